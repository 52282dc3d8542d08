// SPDX-License-Identifier: Apache-2.0
// Memory mode, with logs that stay whole after checkpoints (CORE-C7): the nodes of a simulated
// group give their replicas the places, in any order, late or not at all; some stop keeping the log
// and start again; and all processes die at once and begin at the newest checkpoint.  A separate
// generator draws all this, so that other worlds stay unchanged.
#include <algorithm>
#include <utility>

#include "consensus/sim/cluster.h"

namespace crane::consensus::sim {

namespace {

constexpr std::uint64_t kRoundNs = 10'000'000;
constexpr std::uint64_t kLateMaxNs = 30'000'000;
constexpr std::uint64_t kDownMaxNs = 10'000'000;
// Probabilities per round, in thousandths.
constexpr std::uint64_t kGetsPlace = 400;
constexpr std::uint64_t kDiscards = 20, kAllDiscard = 50;
constexpr std::uint64_t kTakesUp = 100, kAllTakeUp = 100;
// Number of times per world that all processes die, on average.
constexpr std::uint64_t kOutages = 5;
// A replica whose ring does not hold the entries after its place tries another place.
constexpr unsigned kRepeatsMax = 1;
// In the first third of the calm no replica gets a place, so clients fill the rings; then all get
// one.
constexpr std::uint64_t kUntoldPart = 3;

}  // namespace

void Cluster::plan_keep() {
  if (!keeps_log()) return;
  world_.after(keep_random_.about(kRoundNs), [this] {
    if (ended_) return;
    plan_keep();
    keep_round();
  });
}

void Cluster::keep_round() {
  const std::uint64_t untold_ns = faults_.settle_ns / kUntoldPart;
  const bool calm = faults_over_ && world_.now_ns() > faults_end_ns_ + untold_ns;
  if (faults_over_ && !calm) return;
  // Inputs that waited for room continue from here.
  if (calm && !std::exchange(keeps_on_, true)) committed_at_heal_ = agreement_.committed();
  const std::vector<core::Checkpoint> all = kept_by_all();
  if (all.empty()) return;
  Random& r = keep_random_;
  // A cause that makes one replica stop or resume often applies to all: all have the same server.
  const bool all_discard = r.chance(kAllDiscard);
  const bool all_take_up = r.chance(kAllTakeUp);
  const core::Checkpoint looked_up = all[r.below(all.size())];
  const auto begin = static_cast<unsigned>(r.below(faults_.replicas));
  for (unsigned k = 0; k < faults_.replicas; ++k) {
    const unsigned id = (begin + k) % faults_.replicas;
    Node& n = nodes_[id];
    if (n.life == Life::kDown) continue;
    if (calm) {
      keep_log(id, all.back(), 0);
    } else if (!n.discarded_log && (all_discard || r.chance(kDiscards))) {
      n.discarded_log = true;
      keep_log(id, std::nullopt, 0);
    } else if (n.discarded_log ? !all_take_up && !r.chance(kTakesUp) : !r.chance(kGetsPlace)) {
      continue;
    } else {
      // An old place may be before the last given or released one.
      const bool old = r.chance(n.discarded_log ? 500 : 50);
      n.discarded_log = false;
      keep_log(id, old ? looked_up : all.back(), r.chance(300) ? r.below(kLateMaxNs) : 0);
    }
  }
}

// A replica whose log stays whole after a checkpoint has a copy of it.
void Cluster::keep_log(unsigned id, const std::optional<core::Checkpoint>& from,
                       std::uint64_t late_ns) {
  after(late_ns, id, [this, id, from] {
    Node& n = nodes_[id];
    const Role role = n.core->role();
    if (role == Role::kStarting || role == Role::kFailed) return;
    if (!from) {
      trace_line("replica %u does not keep its log any more", id);
      kept_log_.on_given_up(id);
      return step(id, core::Keep{});
    }
    const Index at = from->at.last.index;
    if (n.kept.empty() || n.kept.back().at.last.index < at) keep(id, *from);
    trace("replica %u is to keep its log after entry %llu", id, ull(value(at)));
    ++outcome_.keeps;
    n.keep_place = from;
    kept_log_.on_kept(id, at, Index{n.cells[core::kPromiseCell][core::kLowWaterIndex]});
    step(id, core::Keep{from->at});
  });
}

void Cluster::plan_outage() {
  if (!keeps_log()) return;
  world_.after(keep_random_.about(faults_.duration_ns / kOutages), [this] {
    if (faults_over_ || world_.now_ns() >= faults_.duration_ns) return;
    plan_outage();
    outage();
  });
}

void Cluster::outage() {
  trace_line("all processes die");
  ++outcome_.outages;
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    Node& n = nodes_[i];
    if (n.life == Life::kDown) continue;
    crash(i);
    n.refused = std::max(n.refused, 1U);  // it begins at the newest checkpoint
    world_.after(keep_random_.below(kDownMaxNs), [this, i] {
      if (!ended_) restart(i);
    });
  }
}

// Sometimes the server begins at the very place that it was given last.
std::optional<core::Checkpoint> Cluster::checkpoint_to_keep_from(unsigned id) {
  const Node& n = nodes_[id];
  if (!keeps_log() || !n.keep_place || n.refused > kRepeatsMax) return std::nullopt;
  return keep_random_.chance(700) ? n.keep_place : std::nullopt;
}

// It has entered its log, and must keep everything after the place where its server is.
void Cluster::note_begun(unsigned id) {
  const auto at = std::exchange(nodes_[id].begins, std::nullopt);
  if (keeps_log() && at) kept_log_.on_begun(id, *at);
}

}  // namespace crane::consensus::sim
