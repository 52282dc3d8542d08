// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/status_reporter.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/statvfs.h>
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
#include "runtime/setup/version.h"

namespace crane::node {
namespace {

void describe_schedule(const dmt::Layout& w, NodeStatus& s) {
  // The thread that has the turn owns clock and hash: they match only if no thread had the turn.
  const auto& holder = w.scheduler.holder;
  const bool idle = holder.load(std::memory_order_acquire) == dmt::kHolderIdle;
  s.clock = w.scheduler.clock;
  s.schedule_hash = w.scheduler.hash;
  s.settled = idle && holder.load(std::memory_order_seq_cst) == dmt::kHolderIdle;
  s.preempted = dmt::preempt_requests_obeyed(w);
  s.slices = w.slice_report.slices.load(std::memory_order_relaxed);
  s.tick_points = __atomic_load_n(&w.tick_points.used, __ATOMIC_RELAXED);
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
  s.differ = check.alarms().differ();
  s.divergences = check.alarms().count();
}

}  // namespace

StatusReporter::StatusReporter(const StatusSources& sources)
    : from_(sources),
      events_(sources.config.replica_dir() + "/events.jsonl", sources.config.replica),
      begun_unix_s_(unix_ms() / 1000),
      own_(ReplicaId{sources.config.replica}) {}

bool StatusReporter::takes_clients() const {
  return from_.proxy.leading() && from_.leadership.admitted(from_.server.applied());
}

bool StatusReporter::no_room() const {
  return from_.group.out_of_room() || from_.server.segment().short_of_memory() ||
         from_.server.waits_for_room();
}

replica::Glance StatusReporter::glance() const {
  const ReplicaServer& server = from_.server;
  replica::Glance g;
  g.role = from_.leadership.role();
  g.view = from_.leadership.view();
  g.leads = from_.leadership.leads();
  g.answering = from_.group.quorum().answering;
  g.takes_clients = takes_clients();
  g.no_room = no_room();
  g.server_pid = server.pid();
  g.server_exit = server.exit().reported() ? server.exit().code() : -1;
  g.acceptor_only = from_.recovery.acceptor_only();
  g.catches_up = from_.recovery.catches_up();
  g.has_more_to_run = server.applied() < from_.intake.last_for_server();
  g.divergences = from_.live_check.alarms().count();
  g.checkpoints = from_.recovery.checkpoints_tried();
  return g;
}

control::Readiness StatusReporter::readiness(const replica::Glance& seen, bool needs_checkpoint,
                                             std::int64_t now_ns) const {
  const Recovery& recovery = from_.recovery;
  replica::Report report;
  report.recovers = recovery.meter().recovering() || recovery.catches_up();
  report.needs_checkpoint = needs_checkpoint;
  report.waits_at_leader =
      from_.config.spins && dmt::is_at_leader_clock_limit(from_.server.layout());
  report.held_ns = from_.proposals.held_ns(now_ns);
  report.behind_ns = from_.progress.behind_ns(from_.server.applied(), now_ns);
  if (report.recovers) report.progress = recovery.meter().progress();
  if (recovery.acceptor_only()) {
    report.progress = {0, value(recovery.held()), 0, -1};
    report.why_no_server = recovery.why_no_server();
  }
  return own_.readiness(seen, report);
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
  if (server.exit().reported()) {
    s.server_exit = server.exit().code();
    s.server_end = server.exit().reason();
    s.server_refused = server.exit().refused();
  }
  s.applied = value(server.applied());
  describe_schedule(server.layout(), s);
  s.soft_barriers = soft_barriers_of(from_.config, server.layout());
  s.stalled_thread = from_.stalls.stalled_thread();
  s.unsliced = from_.slices.unsliced();
  describe_check(from_.live_check, s);
  s.no_quorum = from_.service.why_not_served();
  if (s.log.no_room.empty() && from_.server.segment().short_of_memory()) {
    s.log.no_room = from_.config.replica_shm_dir() + ": the shared memory is full";
  }
  if (s.log.no_room.empty() && server.waits_for_room()) {
    s.log.no_room = from_.config.replica_dir() + ": its server waits for room on a disk";
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
  s.spooled_bytes = server.scheduler_link().spooled_bytes();
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
  s.not_serving = own_.not_serving();
  s.readiness = readiness(glance(), s.log.needs_checkpoint, now_ns);
  s.readiness.recovers = s.readiness.recovers || s.log.fetching;
  s.unsupervised = !from_.service.attended();
  describe_peers(s, now_ns);
  return s;
}

void StatusReporter::describe_peers(NodeStatus& s, std::int64_t now_ns) {
  const replica::PeerNote own = replica::note_of(s.readiness, s.applied);
  for (const ReplicaId peer : own_.notes().ask(now_ns)) {
    replica::PeerNote question = own;
    question.asks = 1;
    (void)send(from_.group, peer, question);  // if lost, the peer counts as silent
  }
  for (const consensus::MemberStatus& m : s.log.members) {
    if (value(m.id) == s.replica) continue;
    s.peers[value(m.id)] = own_.notes().seen(m.id, ReplicaId{s.leader}, now_ns);
  }
  s.receives_log = own_.notes().receives_log(ReplicaId{s.leader}, ReplicaId{s.replica});
}

nlohmann::json StatusReporter::answer() {
  nlohmann::json json = to_json(status());
  json["log_digest"] = checkpoint::digest_of_log(from_.config.group, from_.config.log_id);
  return json;
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

void StatusReporter::step(std::int64_t now_ns) {
  const replica::Glance seen = glance();
  if (own_.must_write(seen, now_ns)) report();
  if (own_.must_look(now_ns)) look(now_ns);
  if (own_.must_report(seen, now_ns)) send_notes(seen, now_ns);  // its next time is set there
}

void StatusReporter::send_notes(const replica::Glance& seen, std::int64_t now_ns) {
  const auto report = own_.note_to_send(readiness(seen, false, now_ns), seen,
                                        from_.server.applied(), from_.group.status(), now_ns);
  const replica::DrainedNote drained = own_.notes().drained();
  for (const ReplicaId to : report.to) {
    // If this note is lost, the peer does not know why the others are away.
    if (!drained.empty() && own_.notes().is_new(to)) (void)send(from_.group, to, drained);
    // A person looks at the peer. If this note is lost, the next one comes with its next question.
    if (own_.notes().is_asked_by(to)) (void)send(from_.group, to, host_note());
    own_.sent(to, send(from_.group, to, report.note), now_ns);
  }
}

replica::HostNote StatusReporter::host_note() const {
  replica::HostNote note;
  note.begun_unix_s = begun_unix_s_;
  struct statvfs found {};
  if (::statvfs(from_.config.dir.c_str(), &found) == 0) {
    note.disk_bytes = found.f_blocks * found.f_frsize;
    note.disk_free_bytes = found.f_bavail * found.f_frsize;
  }
  std::strncpy(note.commit, setup::commit(), sizeof note.commit - 1);
  return note;
}

void StatusReporter::is_drained() {
  replica::DrainedNote note;
  note.add(ReplicaId{from_.config.replica});
  for (const consensus::MemberStatus& m : from_.group.members()) {
    if (m.connected && value(m.id) != from_.config.replica) (void)send(from_.group, m.id, note);
  }
  from_.group.flush_doorbells();  // the node ends in this round
}

void StatusReporter::look(std::int64_t now_ns) {
  stuck_.look(from_.server.layout(), from_.server.pid() > 0, now_ns);
  dmt::Layout& w = from_.server.layout();
  const bool rests = w.scheduler.holder.load(std::memory_order_acquire) == dmt::kHolderIdle;
  own_.looked(glance(), listen_queues(w), rests, stuck_.text(), now_ns);
}

}  // namespace crane::node
