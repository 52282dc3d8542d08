// SPDX-License-Identifier: Apache-2.0
// The faults of a simulated group, the client, and the check at the end.
#include <algorithm>
#include <cstring>

#include "consensus/sim/cluster.h"

namespace crane::consensus::sim {

namespace {

constexpr std::uint64_t kQuietPart = 3;  // of the calm: the client stops for the last such part
constexpr std::uint64_t kMoreTimeNs = 1'000'000'000;
// Extensions for replicas that still get entries, over a slow link, at the end.
constexpr unsigned kMoreTimeMax = 4;
// New leaders after the last fault.  A storm's network delays continue and may still cost some.
constexpr std::uint64_t kViewsAfterStorm = 8;

}  // namespace

void Cluster::plan_incident() {
  world_.after(world_.random.about(faults_.incident_every_ns), [this] { incident(); });
}

unsigned Cluster::victim() {
  if (world_.random.chance(faults_.aim_at_leader_per_mille)) {
    for (unsigned i = 0; i < faults_.replicas; ++i) {
      if (nodes_[i].life == Life::kUp && nodes_[i].core->leading_view() != View{0}) return i;
    }
  }
  return static_cast<unsigned>(world_.random.below(faults_.replicas));
}

void Cluster::incident() {
  if (faults_over_ || world_.now_ns() >= faults_.duration_ns) return;
  plan_incident();
  Random& r = world_.random;
  const std::uint64_t length = r.between(500'000, faults_.incident_max_ns);
  const unsigned id = victim();
  ++outcome_.incidents;
  std::uint64_t pick =
      r.below(faults_.cut_weight + faults_.isolate_weight + faults_.crash_weight +
              faults_.pause_weight + faults_.abdicate_weight + faults_.app_stall_weight +
              faults_.power_weight + faults_.blackout_weight + faults_.more_weights());
  if (lose_power_sometimes(pick, id, length)) return;
  if (falls_on(pick, faults_.cut_weight)) {
    const unsigned other = static_cast<unsigned>(r.below(faults_.replicas));
    cut(id, other, true);
    world_.after(length, [this, id, other] { cut(id, other, false); });
  } else if (falls_on(pick, faults_.isolate_weight)) {
    for (unsigned i = 0; i < faults_.replicas; ++i) cut_both(id, i, true);
    world_.after(length, [this, id] {
      for (unsigned i = 0; i < faults_.replicas; ++i) cut_both(id, i, false);
    });
  } else if (falls_on(pick, faults_.crash_weight)) {
    if (nodes_[id].life == Life::kDown) return;
    crash(id);
    const bool lost = lost_count_ < faults_.lost_max && r.chance(500) && may_lose(id);
    if (lost) lose_machine(id);
    world_.after(length, [this, id] { restart(id); });
  } else if (falls_on(pick, faults_.pause_weight)) {
    if (nodes_[id].life != Life::kUp) return;
    stop_process(id, length);
  } else if (falls_on(pick, faults_.abdicate_weight)) {
    if (nodes_[id].life != Life::kUp) return;
    step(id, core::Abdicate{});
    after(length, id, [this, id] { step(id, core::ServerHealthy{}); });
  } else if (falls_on(pick, faults_.app_stall_weight)) {
    trace_line("replica %u: the application stalls", id);
    nodes_[id].app_stalled_until_ns = world_.now_ns() + length;
  } else {
    more_incident(pick, id, length);
  }
}

void Cluster::crash(unsigned id) {
  Node& n = nodes_[id];
  trace_line("replica %u crashes", id);
  n.life = Life::kDown;
  ++n.process;
  n.deferred.clear();
  n.stuck.clear();  // a copy stopped in the middle stays incomplete
  n.config = newest_config(id);
  n.begins.reset();
  n.core.reset();
  if (application_) application_->ended(id);
  crash_disk(id);
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    // Posted operations die with the process, or are still sent.
    Link& l = link(id, i);
    if (l.torn || world_.random.chance(500)) ++l.connection;
    l.torn = false;
    l.waiting.clear();
    if (!faults_.death_is_seen || i == id) continue;
    const std::uint32_t process = nodes_[i].process;
    world_.after(delay(), [this, id, i, process] {
      if (nodes_[id].life != Life::kDown) return;
      for_process(i, process, [this, id, i] { step(i, core::PeerDown{id_of(id)}); });
    });
  }
}

void Cluster::wipe(Node& n) {
  std::fill(n.memory.begin(), n.memory.end(), std::byte{0});
  n.cells = {};
  for (Grant& g : n.grants) g.live = false;
}

void Cluster::lose_memory(unsigned id) {
  Node& n = nodes_[id];
  trace("replica %u loses its memory", id);
  ++lost_count_;
  wipe(n);
  ++n.incarnation;
  n.lost = true;
  kept_log_.on_given_up(id);
}

// It loses its memory and, in disk mode, its disk: the replica recovers on another machine.
void Cluster::lose_machine(unsigned id) {
  lose_memory(id);
  nodes_[id].no_disk = true;
  nodes_[id].kept.clear();
  nodes_[id].keep_place.reset();
}

void Cluster::restart(unsigned id) {
  Node& n = nodes_[id];
  if (n.life != Life::kDown) return;
  for (unsigned i = 0; i < faults_.replicas; ++i) ++link(id, i).connection;
  for (unsigned i = 0; i < faults_.replicas; ++i) link(id, i).broken = false;
  const auto checkpoint = checkpoint_for(id);
  if (!checkpoint) no_gap_.on_restart(id);
  start(id, std::exchange(n.lost, false) ? core::StartKind::kLost : core::StartKind::kSurvived,
        checkpoint);
  if (!faults_.death_is_seen) return;
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    if (i == id || nodes_[i].life == Life::kDown) continue;
    const std::uint32_t process = nodes_[i].process;
    // After PeerDown, in order.
    world_.after(faults_.slow_max_ns + delay(), [this, id, i, process] {
      if (nodes_[id].life == Life::kDown) return;
      for_process(i, process, [this, id, i] { step(i, core::PeerUp{id_of(id)}); });
    });
  }
}

void Cluster::pause(unsigned id) {
  trace_line("replica %u stops", id);
  nodes_[id].life = Life::kPaused;
}

void Cluster::resume(unsigned id) {
  Node& n = nodes_[id];
  if (n.life != Life::kPaused) return;
  trace_line("replica %u continues", id);
  n.life = Life::kUp;
  if (application_) application_->resumed(id);
  for (auto& copy : std::exchange(n.stuck, {})) copy();
  const std::uint32_t process = n.process;
  for (auto& what : std::exchange(n.deferred, {})) for_process(id, process, std::move(what));
}

void Cluster::cut(unsigned a, unsigned b, bool cut_now) {
  if (a == b || (faults_over_ && cut_now)) return;
  trace_line("link %u -> %u %s", a, b, cut_now ? "is cut" : "is whole");
  link(a, b).cut = cut_now;
}

void Cluster::cut_both(unsigned a, unsigned b, bool cut_now) {
  cut(a, b, cut_now);
  cut(b, a, cut_now);
}

// The last fault: from here on the group must become live.
void Cluster::heal() {
  faults_over_ = true;
  trace_line("all faults end");
  for (Link& l : links_) l.cut = l.refuses = false;
  world_.after(faults_.settle_ns, [this] { check_end(); });
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    // Not 0: entries that it takes late must not be judged by the current members.
    nodes_[i].app_stalled_until_ns = std::min<std::uint64_t>(nodes_[i].app_stalled_until_ns, 1);
    nodes_[i].slow_factor = 1;
    if (nodes_[i].life == Life::kPaused) resume(i);
    if (nodes_[i].life == Life::kDown) restart(i);
    if (nodes_[i].life == Life::kUp) step(i, core::ServerHealthy{});
  }
  committed_at_heal_ = agreement_.committed();
  if (application_) application_->faults_end();
}

Result<Index> Cluster::propose(unsigned id, const core::Proposal& proposal) {
  const auto index = nodes_[id].core->propose(proposal, now_at(id));
  if (index.ok()) trace_.count(world_.now_ns(), id, "proposes", value(index.value()));
  return index;
}

void Cluster::end_process(unsigned id, std::uint64_t length_ns) {
  if (!runs(id)) return;
  crash(id);
  world_.after(length_ns, [this, id] { restart(id); });
}

void Cluster::stop_process(unsigned id, std::uint64_t length_ns) {
  if (nodes_[id].life != Life::kUp) return;
  pause(id);
  const std::uint32_t process = nodes_[id].process;
  world_.after(length_ns, [this, id, process] {
    if (nodes_[id].process == process) resume(id);
  });
}

void Cluster::propose() {
  Random& r = world_.random;
  if (beyond_) return;
  const std::uint64_t client_ns = faults_.settle_ns / kQuietPart * (kQuietPart - 1);
  if (faults_over_ && world_.now_ns() > faults_end_ns_ + client_ns) return;
  const bool group = committed_config_.members.count() > 1;  // a single replica does little else
  const bool calm = faults_over_ && group && faults_.calm_propose_ns != 0;
  const std::uint64_t every = calm ? faults_.calm_propose_ns : faults_.propose_every_ns;
  world_.after(r.about(every), [this] { propose(); });
  const auto begin = static_cast<unsigned>(r.below(faults_.replicas));
  for (unsigned k = 0; k < faults_.replicas; ++k) {
    const unsigned id = (begin + k) % faults_.replicas;
    Node& n = nodes_[id];
    if (n.life != Life::kUp || !n.leads) continue;
    const std::uint64_t burst = r.chance(100) ? r.between(2, 12) : 1;
    for (std::uint64_t b = 0; b < burst; ++b) {
      std::uint64_t number = next_proposal_++;
      if (!again_.empty()) {  // a mutant
        number = again_.back();
        again_.pop_back();
      }
      const std::vector<std::byte> bytes = payload(n, number);
      core::Proposal p;
      p.type = 1;
      p.grant = static_cast<std::uint32_t>(number & 0xffff);
      p.stamp_ns = world_.now_ns();
      p.payload = bytes;
      const auto index = n.core->propose(p, now_at(id));
      const bool full = !index.ok() && n.core->keeps_leading() && n.core->backlog() == 0;
      if (full && keeps_log()) ++outcome_.full;
      if (!index.ok()) break;
      trace_.count(world_.now_ns(), id, "proposes", value(index.value()));
      n.in_flight.push_back(number);
    }
    pump(id);
    return;
  }
}

std::vector<std::byte> Cluster::payload(const Node& leader, std::uint64_t number) {
  const std::uint64_t size =
      faults_.forge ? faults_.payload_max : world_.random.between(8, faults_.payload_max);
  std::vector<std::byte> bytes(size, std::byte(number));
  if (faults_.forge) forge(leader, bytes);
  std::memcpy(bytes.data(), &number, 8);
  return bytes;
}

void Cluster::check_end() {
  std::uint64_t delivered = 0;
  for (const Node& n : nodes_) delivered += n.life == Life::kUp ? value(n.core->delivered()) : 0;
  const bool progress = delivered > std::exchange(delivered_at_check_, delivered);
  const bool storm = faults_.scene == Scene::kStorm;
  if (storm && some_catch_up() && (progress || ++more_time_ < kMoreTimeMax)) {
    return world_.after(kMoreTimeNs, [this] { check_end(); });
  }
  ended_ = true;
  if (!outcome_.ok()) return;
  if (faults_.scene != Scene::kStorm) return check_calm();
  violate(stable_.at_end(outcome_.views_after_faults, kViewsAfterStorm));
  const std::uint64_t after = agreement_.committed() - committed_at_heal_;
  // Memory mode: a replica that needs bytes that left the ring can continue only from a checkpoint
  // (L4).  With rings that are lapped in moments it is not tracked which replicas these are.
  const bool small_ring = faults_.ring_bytes < (1U << 16);
  const bool is_checked = faults_.disk || checkpoints_on();
  if (!is_checked && (small_ring || !some_majority_needs_none())) {
    outcome_.given_up = !some_majority_needs_none();
    return;
  }
  // A log was given up and its server lost: the others may need entries that only that server had.
  if (given_up_in_vain_ || !outlives_loss(newest_config().members, faults_.replicas)) {
    outcome_.given_up = true;
    return;
  }
  violate(liveness_.at_end(after));
  if (application_) violate(application_->at_end());
  for (unsigned i = 0; i < faults_.replicas; ++i) check_member_at_end(i);
}

}  // namespace crane::consensus::sim
