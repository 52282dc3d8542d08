// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/status.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "dmt/sequence/entry.h"
#include "proxy/clients/encode.h"
#include "runtime/control/schema.h"
#include "runtime/control/start_file.h"
#include "runtime/setup/version.h"

namespace crane::node {

namespace {

// An unknown or absent value is null, because a number in its place would be taken as valid.
nlohmann::json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

nlohmann::json number_or_null(bool is_known, std::int64_t number) {
  return is_known ? nlohmann::json(number) : nlohmann::json();
}

nlohmann::json host_json(const replica::HostNote& host) {
  return {{"commit", std::string(host.commit, strnlen(host.commit, sizeof host.commit))},
          {"begun_unix_s", host.begun_unix_s},
          {"disk_bytes", host.disk_bytes},
          {"disk_free_bytes", host.disk_free_bytes}};
}

// Another member: the leader's knowledge of it, and its own reports.
nlohmann::json peer_json(const NodeStatus& s, const consensus::MemberStatus& m,
                         nlohmann::json known) {
  const auto found = s.peers.find(value(m.id));
  const auto seen = found == s.peers.end() ? replica::PeerView{} : found->second;
  known["streaming"] = s.role == "leader" ? m.streaming : seen.receives_log;
  known["silent"] = seen.silent;
  known["was_there"] = seen.was_there;
  if (seen.drained && !m.connected) known["drained"] = *seen.drained;
  if (seen.reported) {
    known["readiness"] = control::to_json(*seen.reported);
    known["applied"] = seen.applied;
  }
  if (seen.host) known["host"] = host_json(*seen.host);
  if (s.role != "leader") return known;
  const replica::FollowerLag lag = s.lag_of(m.id);
  known.update(
      {{"last", value(m.last)}, {"lag_entries", lag.entries}, {"lag_ms", lag.ns / 1'000'000}});
  // A voter reports it only if checkpoints need it.
  if (value(m.applied) > seen.applied) known["applied"] = value(m.applied);
  return known;
}

// The members of the group, and the state of the others as known to this replica.
std::pair<nlohmann::json, nlohmann::json> members_json(const NodeStatus& s) {
  nlohmann::json members = nlohmann::json::array();
  nlohmann::json peers = nlohmann::json::array();
  for (const consensus::MemberStatus& m : s.log.members) {
    nlohmann::json one{{"replica", value(m.id)},
                       {"member", consensus::name(m.role)},
                       {"incarnation", m.incarnation},
                       {"connected", m.connected},
                       {"needs_checkpoint", m.needs_checkpoint}};
    if (value(m.id) != s.replica) peers.push_back(peer_json(s, m, one));
    members.push_back(std::move(one));
  }
  return {members, peers};
}

// The replica's resources of its machine; null: no choice was made.
nlohmann::json machine_json(const NodeStatus& s) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::json() : nlohmann::json(text);
  };
  return {{"ports", s.ports},
          {"device", or_null(s.log.fabric.device)},
          {"fence", or_null(s.log.fabric.fence)},
          {"log_pages", or_null(s.log.fabric.pages)},
          {"links_lost", s.log.fabric.links_lost},
          {"probes", s.log.fabric.probes},
          {"cpus", or_null(s.cpus)},
          {"placement", or_null(s.placement)},
          {"numa_node", number_or_null(s.numa_node >= 0, s.numa_node)}};
}

// Calls of the server that bypassed the schedule (null: the kernel does not report them), and
// features that it tried to use without success.
nlohmann::json unhooked_json(const NodeStatus& s) {
  nlohmann::json calls = nlohmann::json::array();
  for (const Unhooked& u : s.unhooked) {
    calls.push_back({{"call", u.call},
                     {"object", u.object},
                     {"offset", fmt::format("0x{:x}", u.offset)},
                     {"outcome", u.outcome},
                     {"count", u.count}});
  }
  return {{"unhooked_calls", s.watched ? nlohmann::json(s.unhooked_calls) : nlohmann::json()},
          {"unhooked", std::move(calls)},
          {"unsupported",
           {{"datagrams", s.unsupported.datagrams},
            {"udp_ports", s.unsupported.udp_ports},
            {"sandboxes", s.unsupported.sandboxes}}}};
}

// The stall rule, the thread that holds the turn for long without an operation (null: none), and
// time slices.
nlohmann::json stalls_json(const NodeStatus& s) {
  constexpr std::int64_t kShownNs = 1'000'000'000;
  nlohmann::json stalled_thread;
  const auto ns = static_cast<std::int64_t>(s.now_ns) - s.stalled_thread.since_ns;
  if (s.stalled_thread.slot != 0 && ns >= kShownNs) {
    stalled_thread = {{"slot", s.stalled_thread.slot},
                      {"clock", s.stalled_thread.clock},
                      {"for_ms", ns / 1'000'000}};
  }
  nlohmann::json unsliced;
  if (!s.unsliced.where.empty()) {
    unsliced = {{"where", s.unsliced.where}, {"for_ms", s.unsliced.lasted_ns / 1'000'000}};
  }
  return {{"spins", s.spins},   {"preempted", s.preempted},     {"standing_still", stalled_thread},
          {"slices", s.slices}, {"tick_points", s.tick_points}, {"unsliced", unsliced}};
}

nlohmann::json soft_barriers_json(const NodeStatus& s) {
  nlohmann::json points = nlohmann::json::array();
  for (const SoftBarrierStatus& l : s.soft_barriers) {
    points.push_back({{"function", l.function},
                      {"origin", l.origin},
                      {"state", l.state},
                      {"count", l.count},
                      {"timeout_us", l.timeout_us},
                      {"arrivals", l.arrivals},
                      {"rounds", l.rounds}});
  }
  return {{"soft_barriers", std::move(points)}};
}

nlohmann::json outbound_json(const NodeStatus& s) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [address, counts] : s.outbound) {
    all.push_back(
        {{"address", address}, {"connections", counts.connections}, {"allowed", counts.allowed}});
  }
  return all;
}

nlohmann::json clients_json(const NodeStatus& s) {
  return {{"connections", s.connections},
          {"outbound", outbound_json(s)},
          {"accepted", s.accepted},
          {"refused", s.refused},
          {"reset_slow", s.reset_slow},
          {"reset_leader", s.reset_leader},
          {"takes_clients", s.readiness.takes_clients},
          {"keeps_connections", s.keeps_connections},
          {"adopted", s.adopted},
          {"last_adopted", s.last_adopted},
          {"last_reset", s.last_reset},
          {"bytes_in", s.bytes_in},
          {"bytes_out", s.bytes_out},
          {"forwarded", s.forwarded},
          {"waited_ms", s.waited_ns / 1'000'000}};
}

nlohmann::json checkpoint_json(const NodeStatus& s) {
  const replica::CheckpointStatus& c = s.checkpoint;
  const checkpoint::CheckpointTimes &d = s.dump.supervisor, &r = s.returned.supervisor;
  return {{"checkpoint",
           {{"taken", c.taken},
            {"failed", c.failed},
            {"last", value(c.last)},
            {"under_way", value(c.under_way)},
            {"gave_up", value(c.gave_up)},
            {"why_not", c.why},
            {"busy", c.busy},
            {"rest_us", c.rest_ns / 1000},
            {"held_us", c.held_ns / 1000},
            {"pack_us", c.pack_ns / 1000},
            {"prepare_us", c.prepare_ns / 1000},
            {"phases_us",
             {{"noting", s.dump.noting},
              {"stopping", d.stopping},
              {"dumping", d.dumping},
              {"copying", d.copying},
              {"waiting", d.waiting},
              {"thawing", d.thawing},
              {"segment", s.dump.segment},
              {"frozen", number_or_null(d.frozen >= 0, d.frozen)},
              {"memory", number_or_null(d.memory >= 0, d.memory)}}},
            {"restored_at", s.restored_at},
            {"none_because", s.no_checkpoints},
            {"log_first", value(s.log.first)},
            {"log_covered", value(s.log.covered)},
            {"return_us",
             {{"unpacking", s.returned.unpacking},
              {"copying", r.copying},
              {"criu", r.criu},
              {"running", s.returned.running}}}}}};
}

nlohmann::json recovery_json(const NodeStatus& s) {
  const RecoveryStatus& r = s.recovery;
  nlohmann::json operations = nlohmann::json::array();
  for (const control::Operation& one : r.operations) {
    operations.push_back(control::to_json(one, s.replica));
  }
  return {{"recovery",
           {{"tier", r.tier},
            {"entry", r.entry},
            {"why", r.why},
            {"refused", r.refused},
            {"came_back_by", r.came_back_by},
            {"catches_up", r.catches_up},
            {"progress", control::progress_json(s.readiness)}}},
          {"operations", operations}};
}

// null: this replica has seen no election yet.
nlohmann::json election_json(const NodeStatus& s) {
  const consensus::ElectionStatus& e = s.log.election;
  if (e.at_ns == 0) return {};
  return {{"view", view_counter(e.view)},
          {"cause", consensus::name(e.cause)},
          {"took_us", e.took_ns / 1000},
          {"age_ms", (s.now_ns - std::min(s.now_ns, e.at_ns)) / 1'000'000}};
}

// null: there are no heartbeats for failure detection.
nlohmann::json detection_json(const NodeStatus& s) {
  const consensus::DetectionStatus& d = s.log.detection;
  if (d.period_ns == 0) return {};
  return {
      {"score", d.score}, {"suspect_at", d.suspect_at},       {"trust_at", d.trust_at},
      {"full", d.full},   {"misses_needed", d.misses_needed}, {"period_us", d.period_ns / 1000}};
}

// null: nothing measured yet.
nlohmann::json latency_json(const LatencyHistogram& taken) {
  const std::uint64_t count = taken.total();
  if (count == 0) return {};
  return {{"count", count},
          {"mean_us", taken.sum_ns / static_cast<std::int64_t>(count) / 1000},
          {"p50_us", taken.quantile_ns(0.5) / 1000},
          {"p99_us", taken.quantile_ns(0.99) / 1000}};
}

// How far the replica lags, and latencies.
nlohmann::json pace_json(const NodeStatus& s) {
  return {{"leader_changes", s.reigns},
          {"lag_ms", s.lag_ns / 1'000'000},
          {"commit_latency", latency_json(s.commit_times)},
          {"store_latency", latency_json(s.log.synced)},
          {"spooled_bytes", s.spooled_bytes},
          {"wakeups", s.wakeups},
          {"divergences", s.divergences}};
}

// The replicas of a group may be of different builds while it is upgraded.
nlohmann::json build_json(const NodeStatus& s) {
  return {{"build",
           {{"commit", setup::commit()},
            {"versions", setup::agreed_versions_text()},
            {"segment", setup::segment_version()},
            {"libcrane", s.library.empty() ? nlohmann::json() : nlohmann::json(s.library)}}}};
}

nlohmann::json upgrade_json(const NodeStatus& s) {
  return {{"upgrade",
           {{"state", name(s.upgrade.state())},
            {"entry", value(s.upgrade.entry())},
            {"why", s.upgrade.why()},
            {"command", nlohmann::json(s.server.command)
                            .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)},
            {"files", s.server.files}}}};
}

// The state of the group as known to this replica.
nlohmann::json group_json(const NodeStatus& s) {
  const control::Verdict verdict = verdict_of(s);
  return {{"readiness", control::to_json(s.readiness)},
          {"verdict", control::to_json(verdict)},
          {"may_lose", verdict.may_lose ? nlohmann::json(*verdict.may_lose) : nlohmann::json()}};
}

std::array<nlohmann::json, 11> parts_json(const NodeStatus& s) {
  return {machine_json(s), unhooked_json(s),   stalls_json(s),   soft_barriers_json(s),
          clients_json(s), checkpoint_json(s), recovery_json(s), pace_json(s),
          build_json(s),   upgrade_json(s),    group_json(s)};
}

}  // namespace

replica::FollowerLag NodeStatus::lag_of(ReplicaId follower) const {
  const auto found = follower_lags.find(value(follower));
  return found == follower_lags.end() ? replica::FollowerLag{} : found->second;
}

control::GroupView seen_by(const NodeStatus& s) {
  replica::KnownMembers known;
  known.self = ReplicaId{s.replica};
  known.leads = s.role == "leader";
  if (s.leader < kReplicasMax) known.leader = ReplicaId{s.leader};
  known.members = s.log.members;
  known.own = s.readiness;
  known.receives_log = s.receives_log;
  known.no_quorum = s.no_quorum;
  if (s.differ) known.alarm = s.alarm;
  known.unsupervised = s.unsupervised;
  control::GroupView group = replica::seen_by(known, s.peers);
  group.no_checkpoints = s.no_checkpoints;
  return group;
}

control::Verdict verdict_of(const NodeStatus& status) {
  return control::verdict_of(seen_by(status));
}

std::uint64_t inputs_of(const NodeStatus& s) {
  std::uint64_t inputs = 0;
  for (std::size_t type = 1; type < s.entries.size(); ++type) {
    if (origin_of(static_cast<EntryType>(type)) == EntryOrigin::kClient) inputs += s.entries[type];
  }
  return inputs;
}

nlohmann::json to_json(const NodeStatus& s) {
  nlohmann::json entries;
  std::uint64_t total = 0;
  for (std::size_t type = 1; type < s.entries.size(); ++type) {
    const auto t = static_cast<EntryType>(type);
    if (std::strcmp(proxy::name(t), "unknown") == 0) continue;
    entries[proxy::name(t)] = s.entries[type];
    total += s.entries[type];
  }
  const auto [members, peers] = members_json(s);
  nlohmann::json out{
      {"version", control::kVersion},
      {"t", "status"},
      {"group", s.group},
      {"replicas", s.replicas},
      {"fabric", s.fabric},
      {"server_exit", number_or_null(s.server_exit >= 0, s.server_exit)},
      {"server_end", text_or_null(s.server_end)},
      {"server_refused", text_or_null(s.server_refused)},
      {"durability", s.durability},
      {"peers_connected", s.connected},
      {"peers", peers},
      {"replica", s.replica},
      {"pid", s.pid},
      {"server_pid", number_or_null(s.server_pid > 0, s.server_pid)},
      {"role", s.role},
      {"view", s.view},
      {"leader", number_or_null(s.leader < kReplicasMax, s.leader)},
      {"members", members},
      {"changing_members", s.log.changing},
      {"needs_checkpoint", s.log.needs_checkpoint},
      {"catching_up", s.log.fetching},
      {"last_election", election_json(s)},
      {"detection", detection_json(s)},
      {"last", s.last},
      {"commit", s.committed},
      {"durable", s.durability == "disk" ? nlohmann::json(value(s.log.durable)) : nlohmann::json()},
      {"applied", s.applied},
      {"clock", s.clock},
      {"schedule_hash", fmt::format("{:016x}", s.schedule_hash)},
      {"settled", s.settled},
      {"verified",
       {{"index", s.verified},
        {"verdict", s.verdict},
        {"entries_since", s.applied - std::min(s.applied, s.verified)},
        {"age_ms", s.verified_ns == 0 ? nlohmann::json() : nlohmann::json(s.verified_ago_ms())},
        {"alarm", s.alarm},
        {"differ", s.differ}}},
      {"no_quorum", s.no_quorum.empty() ? nlohmann::json() : nlohmann::json(s.no_quorum)},
      {"no_room", s.log.no_room.empty() ? nlohmann::json() : nlohmann::json(s.log.no_room)},
      {"not_serving", text_or_null(s.not_serving)},
      {"supervised", !s.unsupervised},
      {"outputs_bytes", s.outputs_bytes},
      {"outputs_digest", fmt::format("{:016x}", s.outputs_digest)},
      {"entries", entries},
      {"entries_total", total},
      {"inputs", inputs_of(s)}};
  for (const auto& part : parts_json(s)) out.update(part);
  return out;
}

Outcome write_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return system_error("create a status file");
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  if (!written || std::rename(fresh.c_str(), path.c_str()) != 0) {
    return system_error("write a status file");
  }
  return Done{};
}

}  // namespace crane::node
