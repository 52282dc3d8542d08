// SPDX-License-Identifier: Apache-2.0
// The node's dealings with crane-run and with whoever asks for its status.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>

#include <nlohmann/json.hpp>

#include "proxy/node/backlog_room.h"
#include "proxy/node/node.h"
#include "proxy/node/placement.h"
#include "runtime/control/schema.h"

namespace crane::node {
namespace {

std::string refusal(const Error& why, const std::string& what) {
  const char* error = why.code == Code::kNotLeader ? "not_leader"
                      : why.code == Code::kBusy    ? "busy"
                                                   : "bad_argument";
  return refused(error, what + ": " + why.what);
}

// How long an operator's abdication lasts when nobody else can lead.
constexpr std::int64_t kTransferNs = 3'000'000'000;

}  // namespace

void Node::open_control_socket() {
  ControlSocketActions actions;
  actions.on_event = [this] { awake(); };
  actions.take_over = [this](int fd, const std::string& request) {
    return take_supervisor(fd, request);
  };
  actions.answer = [this](const std::string& request) { return reply_to(request); };
  control_socket_ = std::make_unique<ControlSocket>(base_, std::move(actions));
  const std::string path = config_.replica_dir() + "/control.sock";
  const Outcome opened = control_socket_->open(path);
  if (opened.ok()) return;
  spdlog::warn("crane-ctl cannot ask this node: {}: {}: {}", path, opened.error().what,
               std::strerror(opened.error().detail));
}

std::string Node::reply_to(const std::string& text) {
  const control::Parsed parsed = control::parse(control::Channel::kNode, text);
  if (!parsed.message) return control::line_of(control::refused(parsed.refusal));
  // From here on every field is of its type and within its bounds (CTL-1).
  const nlohmann::json request = parsed.message->plain("do");
  const std::string what = request["do"].get<std::string>();
  if (what == "status") {
    nlohmann::json said = to_json(status());
    said["log_digest"] = checkpoint::digest_of_log(config_.group, config_.log_id);
    return control::line_of(said);
  }
  if (what == "transfer") {
    const auto to = request.find("to");
    const bool named = to != request.end() && to->is_number_integer();
    return transfer(named ? to->get<int>() : -1);
  }
  if (what == "member") return change_member(request);
  if (what == "signal") return signal_server(request);
  if (what == "checkpoint") return ask_for_checkpoint(request);
  if (what == "leave") return leave_for_a_while();
  if (what == "bring_back") return bring_back(request);
  return refused("unknown", "this version of crane-node does not know that request");
}

// Through the log, so that every replica's server gets it at the same turn (DESIGN D11).
std::string Node::signal_server(const nlohmann::json& request) {
  const auto signo = request.find("signo");
  const bool named = signo != request.end() && signo->is_number_unsigned() &&
                     signo->get<std::uint64_t>() >= 1 && signo->get<std::uint64_t>() < NSIG;
  if (!named) {
    return refusal({Code::kBadArgument, 0, "the request names no signal"}, "no signal");
  }
  const auto number = signo->get<std::uint32_t>();
  const std::string what = fmt::format("signal {}", number);
  if (!leads_) {
    return refusal({Code::kNotLeader, 0, "this replica does not lead"}, what);
  }
  spdlog::info("an operator sends signal {} to the server", number);
  proxy_->batch().add_signal({number, 0});
  return accepted(what + " is on its way to every replica");
}

std::string Node::change_member(const nlohmann::json& request) {
  static const std::map<std::string, consensus::MemberChange::Kind> kKinds = {
      {"add", consensus::MemberChange::Kind::kAdd},
      {"promote", consensus::MemberChange::Kind::kPromote},
      {"remove", consensus::MemberChange::Kind::kRemove}};
  const auto change = request.find("change");
  const auto number = request.find("replica");
  const bool whole = change != request.end() && change->is_string() && number != request.end() &&
                     number->is_number_unsigned() && number->get<std::uint64_t>() < kReplicasMax;
  const auto kind = whole ? kKinds.find(change->get<std::string>()) : kKinds.end();
  if (kind == kKinds.end()) {
    return refusal({Code::kBadArgument, 0, "the request names no change and replica"}, "no change");
  }
  const auto id = number->get<std::uint8_t>();
  // Its place is nobody else's: what is started there is an analysis replica (M7).
  const bool analysis = kind->first == "add" && id == config_.analysis_replica;
  const auto index = consensus_->change_members(
      {analysis ? consensus::MemberChange::Kind::kAddAnalysis : kind->second, ReplicaId{id}});
  consensus_->flush_doorbells();
  const std::string what = fmt::format("{} replica {}", kind->first, id);
  if (!index.ok()) return refusal(index.error(), what);
  spdlog::info("the members are changed: {}", what);
  return accepted(what + ": proposed");
}

// The others elect one of themselves; this replica may lead again once they have, or after a while
// when nobody could.
std::string Node::transfer(int to) {
  if (!leads_) {
    return refused("not_leader", fmt::format("replica {} does not lead", config_.replica));
  }
  if (to == config_.replica) {
    return accepted(fmt::format("replica {} leads already", to));
  }
  if (to >= 0) {
    const bool known = to < config_.replicas;
    const Outcome asked = known ? consensus_->transfer(ReplicaId{static_cast<std::uint8_t>(to)})
                                : Outcome{Error{Code::kBadArgument, 0, "there is no such replica"}};
    if (!asked.ok()) {
      return refusal(asked.error(), fmt::format("replica {} was not made the leader", to));
    }
    spdlog::info("an operator hands the lead to replica {}", to);
    consensus_->flush_doorbells();
    return accepted(fmt::format("replica {} is asked to lead", to));
  }
  if (config_.replicas == 1) return refused("unsupported", "there is no other replica");
  spdlog::info("an operator hands the lead over");
  fit_at_ns_ = monotonic_ns() + kTransferNs;
  consensus_->abdicate("an operator hands the lead over");
  consensus_->flush_doorbells();
  return accepted(fmt::format("replica {} does not lead any more", config_.replica));
}

void Node::ask_for_listener(std::uint16_t port, std::uint64_t backlog) {
  if (proxy_->has_listener(port)) return;
  if (config_.host) return open_own_listener(port, backlog);
  supervisor_.listen(port, backlog, inputs_of_clients() != 0);
}

// Without a crane-run the server gets its port, and the next one opens it.
std::optional<int> Node::ask_for_port(std::uint16_t port) {
  constexpr int kBacklog = 4096;  // bind names none; the kernel has a limit of its own
  if (config_.host) return try_own_listener(port, kBacklog);
  if (!supervisor_.present()) return 0;
  supervisor_.listen_for_bind(port, kBacklog);
  return std::nullopt;
}

NodeStatus Node::status() {
  NodeStatus s;
  const consensus::GroupStatus group = consensus_->status();
  const dmt::SchedulerState& w = layout_->scheduler;
  s.replica = config_.replica;
  s.pid = ::getpid();
  s.server_pid = guard_->running() ? guard_->pid() : -1;
  s.role = consensus::name(group.role);
  s.view = view_counter(group.view);
  s.leader = value(group.leader);
  s.last = value(group.last);
  s.committed = value(group.committed);
  s.applied = value(applied());
  // Clock and hash belong to whoever has the turn: they are a pair only when nobody had it.
  const bool idle = w.holder.load(std::memory_order_acquire) == dmt::kHolderIdle;
  s.clock = w.clock;
  s.schedule_hash = w.hash;
  s.settled = idle && w.holder.load(std::memory_order_seq_cst) == dmt::kHolderIdle;
  s.spins = config_.spins;
  s.preempted = dmt::orders_obeyed(*layout_);
  s.standing = stalls_->standing();
  s.verified = alarms_.verified();
  s.verified_ns = static_cast<std::uint64_t>(verified_ns_);
  s.verdict = proxy::name(verdict_);
  s.alarm = alarms_.text();
  s.no_quorum = quorum_.text();
  s.outputs_bytes = outputs_->bytes();
  s.outputs_digest = outputs_->digest();
  s.entries = entries_;
  s.checkpoint = checkpointer_->status();
  s.dump = last_times_;
  s.returned = returned_;
  s.recovery = recovery();
  s.no_checkpoints = no_checkpoints_;
  s.restored_at = value(restored_.at.index);
  s.group = config_.group;
  s.replicas = config_.replicas;
  s.fabric = config_.host ? config_.host->fabric : "shm";
  s.durability = config_.durability;
  if (config_.host && (config_.cpu >= 0 || !config_.cpus.empty())) s.cpus = own_processors();
  s.numa_node = config_.numa_node;
  s.connected = group.connected;
  s.forwarded = forwarder_ != nullptr ? forwarder_->connections() : 0;
  s.ports = host_ports_;
  s.server_exit = exit_reported_ ? server_exit_code() : -1;
  s.now_ns = static_cast<std::uint64_t>(monotonic_ns());
  s.log = group;
  s.connections = proxy_->connections();
  const proxy::ProxyCounters& c = proxy_->counters();
  s.accepted = c.accepted;
  s.refused = c.refused;
  s.reset_slow = c.reset_slow;
  s.reset_leader = c.reset_leader;
  s.bytes_in = c.bytes_in;
  s.bytes_out = c.bytes_out;
  s.waited_ns = waited_ns_;
  s.line_ups = line_ups_of(config_, *layout_);
  s.unhooked_calls = layout_->unhooked.total.load(std::memory_order_relaxed);
  s.unhooked = unhooked_calls(*layout_);
  s.watched = layout_->unhooked.blind.load(std::memory_order_relaxed) == 0;
  s.unsupported = unsupported(*layout_);
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
