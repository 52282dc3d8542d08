// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/status_reporter.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include <nlohmann/json.hpp>

#include "checkpoint/manifest.h"
#include "dmt/base/clock.h"
#include "proxy/node/backlog_room.h"
#include "proxy/node/placement.h"

namespace crane::node {
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
  s.outbound = proxy.destinations().all();
  const proxy::ProxyCounters& c = proxy.counters();
  s.accepted = c.accepted;
  s.refused = c.refused;
  s.reset_slow = c.reset_slow;
  s.reset_leader = c.reset_leader;
  s.keeps_connections = proxy.shares();
  s.adopted = c.adopted;
  s.last_adopted = c.last_adopted;
  s.last_reset = c.last_reset;
  s.bytes_in = c.bytes_in;
  s.bytes_out = c.bytes_out;
}

void describe_configuration(const Config& config, NodeStatus& s) {
  s.replica = config.replica;
  s.spins = config.spins;
  s.group = config.group;
  s.replicas = config.replicas;
  s.fabric = config.host ? config.host->fabric : "shm";
  s.durability = config.durability;
  if (config.host && !config.cpus.empty()) s.cpus = setup::cpus_text(config.cpus);
  s.numa_node = config.numa_node;
}

void describe_log(const consensus::GroupStatus& group, NodeStatus& s) {
  s.role = consensus::name(group.role);
  s.view = view_counter(group.view);
  s.leader = value(group.leader);
  s.last = value(group.last);
  s.committed = value(group.committed);
  s.connected = group.connected;
  s.log = group;
}

void describe_check(const LiveCheck& check, NodeStatus& s) {
  s.verified = check.alarms().verified();
  s.verified_ns = static_cast<std::uint64_t>(check.verified_ns());
  s.verdict = proxy::name(check.verdict());
  s.alarm = check.alarms().text();
  s.divergences = check.alarms().count();
}

}  // namespace

StatusReporter::StatusReporter(const StatusSources& sources)
    : from_(sources),
      events_(sources.config.replica_dir() + "/events.jsonl", sources.config.replica) {}

NodeStatus StatusReporter::status() {
  NodeStatus s;
  ReplicaServer& server = from_.server;
  describe_configuration(from_.config, s);
  if (const auto place = from_.server.trials().place()) {
    s.placement = *place == NodePlace::kShares ? "shares" : "roams";
  }
  describe_log(from_.group.status(), s);
  s.pid = ::getpid();
  s.server_pid = server.pid();
  s.library = server.segment().library_digest();
  s.server_exit = server.exit().reported() ? server.exit().code() : -1;
  s.applied = value(server.applied());
  describe_schedule(server.layout(), s);
  s.soft_barriers = soft_barriers_of(from_.config, server.layout());
  s.standing = from_.stalls.standing();
  describe_check(from_.live_check, s);
  s.no_quorum = from_.service.why_not_served();
  if (s.log.no_room.empty() && from_.server.segment().short_of_memory()) {
    s.log.no_room = from_.config.replica_shm_dir() + ": the shared memory is full";
  }
  s.outputs_bytes = server.outputs().bytes();
  s.outputs_digest = server.outputs().digest();
  s.entries = from_.intake.counts();
  from_.recovery.describe(s);
  if (from_.host != nullptr) {
    s.forwarded = from_.host->connections();
    s.ports = from_.host->ports();
  }
  describe_clients(from_.proxy, s);
  s.waited_ns = from_.proposals.waited_ns();
  s.reigns = from_.leadership.reigns();
  s.takes_clients = from_.proxy.leading() && from_.leadership.admitted(server.applied());
  s.commit_times = from_.leadership.commit_times();
  s.spooled_bytes = server.slot0().spooled_bytes();
  s.wakeups = from_.loop.waits();
  const std::int64_t now_ns = monotonic_ns();
  s.now_ns = static_cast<std::uint64_t>(now_ns);
  for (const consensus::MemberStatus& m : s.log.members) {
    if (!from_.leadership.leads()) break;
    if (const auto lag = from_.proposals.follower_lag(m.id, now_ns); lag.entries != 0) {
      s.follower_lags[value(m.id)] = lag;
    }
  }
  if (!from_.leadership.leads()) s.lag_ns = from_.progress.behind_ns(server.applied(), now_ns);
  look(now_ns);
  s.not_serving = serving_.why_not(s.server_pid > 0, s.server_exit, now_ns);
  if (!stuck_.text().empty() && s.server_exit < 0) s.not_serving = stuck_.text();
  return s;
}

nlohmann::json StatusReporter::answer() {
  nlohmann::json said = to_json(status());
  said["log_digest"] = checkpoint::digest_of_log(from_.config.group, from_.config.log_id);
  return said;
}

void StatusReporter::report() {
  const std::string path = from_.config.replica_dir() + "/status.json";
  const NodeStatus now = status();
  const Outcome written = write_file(path, to_json(now).dump(2) + "\n");
  if (!written.ok()) spdlog::warn("status.json: {}", written.error().message());
  events_.observe(now, unix_ms());
}

void StatusReporter::leaves(ExitStatus status) {
  events_.note({"leaves", fmt::format("with status {}", code(status))}, unix_ms());
}

StatusReporter::Mark StatusReporter::mark() const {
  return {from_.server.pid(), from_.live_check.alarms().count(), from_.recovery.checkpoints_tried(),
          from_.recovery.catches_up()};
}

void StatusReporter::step(std::int64_t now_ns) {
  if (const Mark now = mark(); now != mark_) {
    mark_ = now;
    changed(now_ns);
  }
  if (now_ns >= report_at_ns_) {
    report_at_ns_ = proxy::kNever;
    report();
  }
  if (serving_.is_due(now_ns)) look(now_ns);
}

void StatusReporter::look(std::int64_t now_ns) {
  serving_.look(listen_queues(from_.server.layout()), now_ns);
  stuck_.look(from_.server.layout(), from_.server.pid() > 0, now_ns);
}

}  // namespace crane::node
