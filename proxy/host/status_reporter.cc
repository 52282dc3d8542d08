// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/status_reporter.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include <nlohmann/json.hpp>

#include "checkpoint/manifest.h"
#include "dmt/base/clock.h"
#include "dmt/stall.h"
#include "proxy/clients/encode.h"
#include "proxy/host/backlog_room.h"
#include "proxy/host/out_of_band.h"
#include "proxy/host/placement.h"

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
      events_(sources.config.replica_dir() + "/events.jsonl", sources.config.replica),
      notes_(ReplicaId{sources.config.replica}) {}

bool StatusReporter::takes_clients() const {
  return from_.proxy.leading() && from_.leadership.admitted(from_.server.applied());
}

bool StatusReporter::no_room() const {
  return from_.group.short_of_room() || from_.server.segment().short_of_memory();
}

control::Readiness StatusReporter::readiness(bool needs_checkpoint, std::int64_t now_ns) const {
  const ReplicaServer& server = from_.server;
  const int exit = server.exit().reported() ? server.exit().code() : -1;
  control::Readiness r;
  r.runs = server.pid() > 0;
  r.acceptor_only = from_.recovery.acceptor_only();
  r.starts = !r.acceptor_only && serving_.starts(r.runs, exit);
  r.takes_clients = takes_clients();
  r.recovers = from_.recovery.meter().recovering() || from_.recovery.catches_up();
  r.needs_checkpoint = needs_checkpoint;
  r.paced = from_.proposals.held_ns(now_ns) > control::kNearMs * 1'000'000;
  r.no_room = no_room();
  // What it has not admitted runs at once when this replica leads.
  r.held =
      !from_.leadership.leads() && from_.config.spins && dmt::is_at_told_clock(server.layout());
  r.lag_ms = from_.progress.behind_ns(server.applied(), now_ns) / 1'000'000;
  if (r.recovers) r.progress = from_.recovery.meter().progress();
  if (r.acceptor_only) r.progress = {0, value(from_.recovery.held()), 0, -1};
  r.why_not = r.acceptor_only ? from_.recovery.why_no_server() : not_serving_;
  return r;
}

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
  s.not_serving = not_serving_;
  s.readiness = readiness(s.log.needs_checkpoint, now_ns);
  s.readiness.recovers = s.readiness.recovers || s.log.fetching;
  s.unsupervised = !from_.service.supervised();
  describe_peers(s, now_ns);
  return s;
}

void StatusReporter::describe_peers(NodeStatus& s, std::int64_t now_ns) {
  const PeerNote own = note_of(s.readiness, s.applied);
  for (const ReplicaId peer : notes_.ask(now_ns)) {
    PeerNote question = own;
    question.asks = 1;
    (void)send(from_.group, peer, question);  // lost: it counts as silent
  }
  for (const consensus::MemberStatus& m : s.log.members) {
    if (value(m.id) == s.replica) continue;
    s.peers[value(m.id)] = notes_.seen(m.id, ReplicaId{s.leader}, now_ns);
  }
  s.gets_log = notes_.gets_log(ReplicaId{s.leader}, ReplicaId{s.replica});
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
  tell_peers(now_ns);
}

void StatusReporter::tell_peers(std::int64_t now_ns) {
  if (from_.config.replicas == 1) return;
  const Told now{from_.leadership.role(),
                 from_.leadership.view(),
                 from_.group.quorum().answering,
                 takes_clients(),
                 no_room(),
                 from_.server.pid(),
                 not_serving_};
  // A server that has something to run may be late soon, which no event tells.
  const bool runs = from_.server.applied() < from_.intake.last_for_server();
  if (runs && tell_at_ns_ == proxy::kNever) tell_at_ns_ = now_ns + kMovesNs;
  if (now == told_ && now_ns < std::min(notes_.due_ns(), tell_at_ns_)) return;
  told_ = now;
  const control::Readiness own = readiness(false, now_ns);
  const consensus::GroupStatus group = from_.group.status();
  PeerNote note = note_of(own, value(from_.server.applied()));
  if (group.needs_checkpoint) note.flags |= PeerNote::kNeedsCheckpoint;
  if (group.fetching) note.flags |= PeerNote::kRecovers;
  // Whom a leader writes to changes by itself, and so does how late a server is that has something
  // to run.
  bool moves =
      own.lag_ms > 0 || own.recovers || from_.server.applied() < from_.intake.last_for_server();
  if (from_.leadership.leads()) {
    note.flags |= PeerNote::kLeads;
    for (const consensus::MemberStatus& m : group.members) {
      const bool written = m.streaming || value(m.id) == from_.config.replica;
      if (written) note.gets_log[value(m.id) / 64] |= std::uint64_t{1} << (value(m.id) % 64);
      moves = moves || (m.connected && !written);
    }
  }
  tell_at_ns_ = moves ? now_ns + kMovesNs : proxy::kNever;
  for (const ReplicaId to : notes_.due(note, group.members, now_ns)) {
    notes_.sent(to, send(from_.group, to, note), now_ns);
  }
}

void StatusReporter::look(std::int64_t now_ns) {
  serving_.look(listen_queues(from_.server.layout()), now_ns);
  const ReplicaServer& server = from_.server;
  const int exit = server.exit().reported() ? server.exit().code() : -1;
  stuck_.look(server.layout(), server.pid() > 0, now_ns);
  not_serving_ = serving_.why_not(server.pid() > 0, exit, now_ns);
  if (!stuck_.text().empty() && exit < 0) not_serving_ = stuck_.text();
  // That it listens rings no bell.
  const bool starts = server.pid() > 0 && serving_.starts(true, exit);
  look_at_ns_ = starts ? now_ns + ServingWatch::kLookEveryNs : proxy::kNever;
}

}  // namespace crane::node
