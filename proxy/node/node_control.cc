// SPDX-License-Identifier: Apache-2.0
// The node's dealings with crane-run and with whoever asks for its status.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include "proxy/node/backlog_room.h"
#include "proxy/node/node.h"
#include "proxy/node/placement.h"
#include "runtime/setup/preflight.h"

namespace crane::node {
void Node::open_control_socket() {
  ControlSocketActions actions;
  actions.on_event = [this] { awake(); };
  actions.take_over = [this](int fd, const std::string& request) {
    return take_supervisor(fd, request);
  };
  actions.answer = [this](const std::string& request) { return requests_->answer(request); };
  control_socket_ = std::make_unique<ControlSocket>(loop_.base(), std::move(actions));
  const std::string path = config_.replica_dir() + "/control.sock";
  const Outcome opened = control_socket_->open(path);
  if (opened.ok()) return;
  spdlog::warn("crane-ctl cannot ask this node: {}: {}: {}", path, opened.error().what,
               std::strerror(opened.error().detail));
}

void Node::open_requests() {
  OperatorActions actions;
  actions.status = [this] {
    nlohmann::json said = to_json(status());
    said["log_digest"] = checkpoint::digest_of_log(config_.group, config_.log_id);
    return said;
  };
  actions.checkpoint = [this](const nlohmann::json& request) { return recovery_->ask(request); };
  actions.takes_checkpoint = [this] { return recovery_->takes_checkpoint(); };
  actions.signal = [this](std::uint32_t signo) { proxy_->batch().add_signal({signo, 0}); };
  // For maintenance, or to begin anew elsewhere in the log: in order, and without being missed.
  actions.leave = [this] {
    const Outcome marked = write_file(config_.replica_dir() + "/" + setup::kDrainedMark, "");
    if (!marked.ok()) {
      spdlog::warn("{}: {}", setup::kDrainedMark, std::strerror(marked.error().detail));
    }
    end_.leave_now();
  };
  requests_ = std::make_unique<OperatorRequests>(config_, *consensus_, leadership_, supervisor_,
                                                 std::move(actions));
}

bool Node::open_host() {
  HostActions actions;
  actions.on_event = [this] { awake(); };
  actions.failed = [this](ExitStatus status, const std::string& why) { fail(status, why); };
  host_ =
      std::make_unique<HostRole>(loop_.base(), config_, *proxy_, leadership_, std::move(actions));
  return host_->open();
}

// A replica that can serve nothing says so to its clients at once, and to its operator.
void Node::look_at_quorum() {
  if (!mode_.member() || end_.stopping()) return;
  const QuorumWatch::Change change = quorum_.step(consensus_->quorum(), now_ns_);
  if (change == QuorumWatch::Change::kNone) return;
  if (change == QuorumWatch::Change::kLost) {
    spdlog::error("{}", quorum_.text());
  } else {
    spdlog::info("a majority of the replicas answers and has a leader: clients are taken again");
  }
  if (host_ != nullptr) host_->refuse(quorum_.refuses());
  report_status();
}

// The group does not miss a replica that was removed, but clients came through its host: they stay
// with the leader until they leave, or the operator stops the node.
void Node::pass_on_the_rest() {
  if (!removed_ || host_ == nullptr || host_->connections() == 0) return;
  control_socket_.reset();
  loop_.stop_waking();
  proxy_.reset();      // nothing new comes: the ports are closed
  consensus_.reset();  // the members see this replica gone
  spdlog::info("{} clients are passed on until they leave; SIGTERM ends that",
               host_->connections());
  end_.resume();
  while (!end_.done() && !end_.stopping() && host_->connections() > 0) loop_.wait();
}

void Node::ask_for_listener(std::uint16_t port, std::uint64_t backlog) {
  if (proxy_->has_listener(port)) return;
  const bool served = intake_->inputs_of_clients() != 0;
  if (host_ != nullptr) return host_->open_listener(port, backlog, served);
  supervisor_.listen(port, backlog, served);
}

// Without a crane-run the server gets its port, and the next one opens it.
std::optional<int> Node::ask_for_port(std::uint16_t port) {
  constexpr int kBacklog = 4096;  // bind names none; the kernel has a limit of its own
  if (host_ != nullptr) return host_->try_listener(port, kBacklog);
  if (!supervisor_.present()) return 0;
  supervisor_.listen_for_bind(port, kBacklog);
  return std::nullopt;
}

namespace {

void describe_schedule(const dmt::Layout& w, NodeStatus& s) {
  // Clock and hash belong to the thread that has the turn: they are a pair only when none had it.
  const auto& holder = w.scheduler.holder;
  const bool idle = holder.load(std::memory_order_acquire) == dmt::kHolderIdle;
  s.clock = w.scheduler.clock;
  s.schedule_hash = w.scheduler.hash;
  s.settled = idle && holder.load(std::memory_order_seq_cst) == dmt::kHolderIdle;
  s.preempted = dmt::orders_obeyed(w);
  s.unhooked_calls = w.unhooked.total.load(std::memory_order_relaxed);
  s.unhooked = unhooked_calls(w);
  s.watched = w.unhooked.blind.load(std::memory_order_relaxed) == 0;
  s.unsupported = unsupported(w);
}

void describe_clients(const proxy::Proxy& proxy, NodeStatus& s) {
  s.connections = proxy.connections();
  const proxy::ProxyCounters& c = proxy.counters();
  s.accepted = c.accepted;
  s.refused = c.refused;
  s.reset_slow = c.reset_slow;
  s.reset_leader = c.reset_leader;
  s.bytes_in = c.bytes_in;
  s.bytes_out = c.bytes_out;
}

}  // namespace

NodeStatus Node::status() {
  NodeStatus s;
  const consensus::GroupStatus group = consensus_->status();
  s.replica = config_.replica;
  s.pid = ::getpid();
  s.server_pid = guard_->running() ? guard_->pid() : -1;
  s.role = consensus::name(group.role);
  s.view = view_counter(group.view);
  s.leader = value(group.leader);
  s.last = value(group.last);
  s.committed = value(group.committed);
  s.applied = value(applied());
  describe_schedule(*layout_, s);
  s.line_ups = line_ups_of(config_, *layout_);
  s.spins = config_.spins;
  s.standing = stalls_->standing();
  s.verified = live_check_->alarms().verified();
  s.verified_ns = static_cast<std::uint64_t>(live_check_->verified_ns());
  s.verdict = proxy::name(live_check_->verdict());
  s.alarm = live_check_->alarms().text();
  s.no_quorum = quorum_.text();
  s.outputs_bytes = outputs_->bytes();
  s.outputs_digest = outputs_->digest();
  s.entries = intake_->counts();
  recovery_->describe(s);
  s.group = config_.group;
  s.replicas = config_.replicas;
  s.fabric = config_.host ? config_.host->fabric : "shm";
  s.durability = config_.durability;
  if (config_.host && (config_.cpu >= 0 || !config_.cpus.empty())) s.cpus = own_processors();
  s.numa_node = config_.numa_node;
  s.connected = group.connected;
  if (host_ != nullptr) {
    s.forwarded = host_->connections();
    s.ports = host_->ports();
  }
  s.server_exit = exit_.reported() ? exit_.code() : -1;
  s.now_ns = static_cast<std::uint64_t>(monotonic_ns());
  s.log = group;
  describe_clients(*proxy_, s);
  s.waited_ns = pacing_->waited_ns();
  const std::int64_t now_ns = monotonic_ns();
  serving_.look(listen_queues(*layout_), now_ns);
  s.not_serving = serving_.why_not(s.server_pid > 0, s.server_exit, now_ns);
  return s;
}

void Node::report_status() {
  const Outcome written =
      write_file(config_.replica_dir() + "/status.json", to_json(status()).dump(2) + "\n");
  if (!written.ok()) spdlog::warn("status.json: {}", std::strerror(written.error().detail));
}

}  // namespace crane::node
