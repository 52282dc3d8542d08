// SPDX-License-Identifier: Apache-2.0
// Plots with a purpose: incidents of several steps, worlds with a lasting fault, forged bytes.
#include <algorithm>
#include <cstring>

#include "consensus/sim/cluster.h"
#include "dmt/base/crc.h"

namespace crane::consensus::sim {

namespace {

constexpr unsigned kHandOversMax = 100;
constexpr std::uint64_t kHandOverNs = 40'000'000;
constexpr std::uint64_t kCalmNs = 1'500'000'000;
// A scene's last fault may cost the leader its place, and the next leader, too; then it is quiet.
constexpr std::uint64_t kViewsInCalm = 3;
constexpr std::uint64_t kUnfitNs = 2'000'000'000;
// An application that falls behind reports it more often than an idle replica has a Tick.
constexpr std::uint64_t kFallsBehindNs = 20'000'000;

}  // namespace

void Cluster::more_incident(std::uint64_t pick, unsigned id, std::uint64_t length) {
  if (falls_on(pick, faults_.mute_weight)) {
    mute(id, length);
  } else if (falls_on(pick, faults_.refuse_weight)) {
    refuse(id, length);
  } else if (falls_on(pick, faults_.race_weight)) {
    race(length);
  } else if (falls_on(pick, faults_.flap_weight)) {
    flap(id, world_.random.between(2, 6));
  } else if (falls_on(pick, faults_.jump_weight)) {
    jump(id);
  } else if (falls_on(pick, faults_.slow_nic_weight)) {
    slow_nic(id, length);
  } else if (falls_on(pick, faults_.bad_disk_weight)) {
    bad_disk(id, length);
  }
}

// It receives but cannot send, or sends but cannot receive.
void Cluster::mute(unsigned id, std::uint64_t length) {
  const bool deaf = world_.random.chance(500);
  const auto all = [this, id, deaf](bool value) {
    for (unsigned i = 0; i < faults_.replicas; ++i) {
      if (deaf) cut(i, id, value);
      if (!deaf) cut(id, i, value);
    }
  };
  all(true);
  world_.after(length, [all] { all(false); });
}

void Cluster::refuse(unsigned id, std::uint64_t length) {
  const auto all = [this, id](bool value) {
    trace_line("operations on replica %u %s", id, value ? "fail at once" : "work again");
    for (unsigned i = 0; i < faults_.replicas; ++i) {
      if (i != id) link(i, id).refuses = link(id, i).refuses = value;
    }
  };
  all(true);
  if (length == 0) return;
  world_.after(length, [this, all] {
    if (!faults_over_) all(false);
  });
}

unsigned Cluster::leader() const {
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    if (nodes_[i].life == Life::kUp && nodes_[i].leads) return i;
  }
  return faults_.replicas;
}

// A reset connection looks like a death: all followers compete with the living leader.
void Cluster::race(std::uint64_t length) {
  const unsigned id = leader();
  if (id == faults_.replicas) return;
  trace_line("all consider replica %u dead", id);
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    if (i == id) continue;
    after(world_.random.below(100'000), i, [this, i, id] { step(i, core::PeerDown{id_of(id)}); });
    after(100'000 + length, i, [this, i, id] { step(i, core::PeerUp{id_of(id)}); });
  }
}

void Cluster::flap(unsigned id, std::uint64_t times) {
  if (nodes_[id].life == Life::kDown || nodes_[id].lost || faults_over_ || times == 0) return;
  crash(id);
  world_.after(world_.random.between(50'000, 2'000'000), [this, id, times] {
    if (nodes_[id].life != Life::kDown) return;
    restart(id);
    world_.after(world_.random.between(50'000, 2'000'000),
                 [this, id, times] { flap(id, times - 1); });
  });
}

void Cluster::jump(unsigned id) {
  const std::uint64_t by = world_.random.between(1'000'000, faults_.jump_max_ns);
  trace_line("the clock of replica %u jumps ahead by %.3f ms", id, static_cast<double>(by) / 1e6);
  nodes_[id].offset_ns += by;
  if (nodes_[id].life == Life::kUp) plan_tick(id);
}

void Cluster::slow_nic(unsigned id, std::uint64_t length) {
  trace_line("the network card of replica %u is %llu times slower", id,
             ull(faults_.slow_nic_factor));
  nodes_[id].slow_factor = faults_.slow_nic_factor;
  world_.after(length, [this, id] { nodes_[id].slow_factor = 1; });
}

// A disk error: the replica reports it and ends; its stored entries are still there.
void Cluster::bad_disk(unsigned id, std::uint64_t length) {
  Node& n = nodes_[id];
  if (!faults_.disk || n.life != Life::kUp || faults_over_) return;
  trace_line("the disk of replica %u fails", id);
  n.disk_failed = true;
  step(id, core::StoreFailed{"the disk fails"});
  if (nodes_[id].life == Life::kUp) crash(id);
  n.disk_failed = false;
  world_.after(length, [this, id] { restart(id); });
}

// A world with fewer than views_min leaders proves little: make some more, then end.
void Cluster::faults_end() {
  faults_end_ns_ = world_.now_ns();
  const bool enough = outcome_.views >= faults_.views_min;
  if (enough || hand_overs_ >= kHandOversMax) {
    return faults_.scene == Scene::kStorm ? heal() : begin_scene();
  }
  ++hand_overs_;
  hand_over();
  world_.after(kHandOverNs, [this] { faults_end(); });
}

void Cluster::hand_over() {
  const unsigned id = leader();
  if (id == faults_.replicas) return;
  trace_line("replica %u must hand over", id);
  step(id, core::Abdicate{});
  after(kHandOverNs / 2, id, [this, id] { step(id, core::ServerHealthy{}); });
}

// The scene's fault begins once there is a leader, and stays.
void Cluster::begin_scene() {
  const unsigned first = leader();
  if (first == faults_.replicas && ++hand_overs_ < 2 * kHandOversMax) {
    world_.after(kHandOverNs, [this] { begin_scene(); });
    return;
  }
  faults_end_ns_ = world_.now_ns();
  committed_at_heal_ = agreement_.committed();
  const auto other = static_cast<unsigned>(
      (first + 1 + world_.random.below(faults_.replicas - 1U)) % faults_.replicas);
  if (faults_.scene == Scene::kTooMuchLost) return wipe_majority();
  if (faults_.scene == Scene::kAllUnfit) return keep_all_unfit();
  if (faults_.scene == Scene::kThreeWayCut) {
    cut_both(first, other, true);
  } else {
    refuse(other, 0);
  }
  faults_over_ = true;
  world_.after(kCalmNs, [this] { check_end(); });
}

// Later all replicas, or one alone, may lead again, while the applications continue to fall behind.
void Cluster::keep_all_unfit() {
  trace_line("all replicas are unfit");
  const std::uint64_t until_ns = world_.now_ns() + kUnfitNs;
  for (unsigned i = 0; i < faults_.replicas; ++i) fall_behind(i, until_ns);
  const bool all = world_.random.chance(500);
  const auto one = static_cast<unsigned>(world_.random.below(faults_.replicas));
  world_.at(until_ns, [this, all, one] {
    committed_at_heal_ = agreement_.committed();
    faults_over_ = true;
    faults_end_ns_ = world_.now_ns();
    for (unsigned i = 0; i < faults_.replicas; ++i) {
      if ((!all && i != one) || nodes_[i].life != Life::kUp) continue;
      trace_line("replica %u is fit", i);
      step(i, core::ServerHealthy{});
    }
    world_.after(kCalmNs, [this] { check_end(); });
  });
}

void Cluster::fall_behind(unsigned id, std::uint64_t unfit_until_ns) {
  if (nodes_[id].life != Life::kUp) return;
  // Repeated, because a replica that an earlier incident made unfit may have become fit meanwhile.
  if (world_.now_ns() < unfit_until_ns) step(id, core::Abdicate{});
  lag_ns_ += kFallsBehindNs;
  step(id, core::ServerLagging{lag_ns_});
  world_.after(kFallsBehindNs, [this, id, unfit_until_ns] { fall_behind(id, unfit_until_ns); });
}

// A majority recovers with empty logs while the only replica that knows better is away.
void Cluster::wipe_majority() {
  beyond_ = true;
  faults_over_ = false;
  const auto keeps = static_cast<unsigned>(world_.random.below(faults_.replicas));
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    cut_both(keeps, i, true);
    if (i == keeps) continue;
    crash(i);
    trace_line("the log of replica %u is wiped", i);
    Node& n = nodes_[i];
    std::fill(n.memory.begin(), n.memory.end(), std::byte{0});
    for (std::size_t w = core::kLowWaterPos; w <= core::kLowWaterView; ++w) {
      n.cells[core::kPromiseCell][w] = 0;
    }
    n.cells[core::kPromiseCell][core::kFirstPos] = 0;
    world_.after(world_.random.between(1'000'000, 20'000'000), [this, i] { restart(i); });
  }
  world_.after(200'000'000, [this] { heal(); });
}

void Cluster::check_calm() {
  if (faults_.scene == Scene::kTooMuchLost) return violate(noticed_.at_end(fatal_seen_));
  violate(stable_.at_end(outcome_.views_after_faults, kViewsInCalm));
  violate(liveness_.at_end(agreement_.committed() - committed_at_heal_));
}

// U11: a client that knows everything but the log id places an entry of the next lap where the scan
// will look for its header.  All entries of such a world have one size.
void Cluster::forge(const Node& leader, std::vector<std::byte>& bytes) const {
  const core::Replica& c = *leader.core;
  const std::uint64_t size = core::entry_bytes(bytes.size());
  const std::uint64_t begin = c.end_pos() + core::kHeaderBytes + faults_.ring_bytes;
  const std::uint64_t ahead = (begin - c.end_pos() + size - 1) / size;
  core::EntryHeader h;
  h.pos = c.end_pos() + ahead * size;
  if (h.pos + core::kHeaderBytes > begin + bytes.size()) return;
  h.log_id = kLogId + (options_.mutant == core::Mutant::kKnownLogId ? 0 : 1);
  h.index = value(c.last().index) + 1 + ahead;
  h.view = h.prev_view = value(c.leading_view());
  h.commit = h.index;
  h.type = 1;
  h.crc = crc32c(reinterpret_cast<const std::byte*>(&h) + sizeof h.crc,
                 core::kHeaderBytes - sizeof h.crc);
  std::memcpy(bytes.data() + (h.pos - begin), &h, sizeof h);
}

}  // namespace crane::consensus::sim
