// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a simulated group: the state of its application is a position in the log.  A
// restarted replica, or one that needs a checkpoint to continue, restores its server from a
// checkpoint, its own or another replica's, older or newer than its memory.  With disks, stores are
// cut below what a majority holds, and one of the checkpoints must always reach the rest.
#include <algorithm>

#include "consensus/sim/cluster.h"

namespace crane::consensus::sim {

namespace {

constexpr std::size_t kKept = 3;
// A replica whose ring has moved on is restarted so often without a newer checkpoint.
constexpr unsigned kRefusedLost = 3;
constexpr unsigned kRefusedMax = 20;
// A checkpoint is due when this part of a ring was delivered since.
constexpr std::uint64_t kDueDivisor = 4;
constexpr std::uint64_t kPublishMaxNs = 10'000'000;

bool older(const core::Checkpoint& a, const core::Checkpoint& b) {
  return a.at.last.index < b.at.last.index;
}

}  // namespace

void Cluster::plan_checkpoint() {
  if (!checkpoints_on()) return;
  world_.after(world_.random.about(faults_.checkpoint_every_ns), [this] {
    if (ended_) return;
    plan_checkpoint();
    take_checkpoint(static_cast<unsigned>(world_.random.below(faults_.replicas)));
    rescue();
  });
}

// The checkpoints of all replicas, by index: on one machine any of them is usable.
std::vector<core::Checkpoint> Cluster::kept_by_all() const {
  std::vector<core::Checkpoint> all;
  for (const Node& n : nodes_) all.insert(all.end(), n.kept.begin(), n.kept.end());
  std::sort(all.begin(), all.end(), older);
  return all;
}

void Cluster::take_checkpoint(unsigned id) {
  Node& n = nodes_[id];
  if (n.life != Life::kUp || n.core->role() == Role::kStarting) return;
  if (n.server_position.last.index == Index{0} || n.packing) return;
  if (!n.kept.empty() && n.kept.back().at.last.index >= last_input_) return;  // no input since
  n.packing = true;
  trace_line("replica %u takes a checkpoint after entry %llu", id,
             ull(value(n.server_position.last.index)));
  const core::Checkpoint made{n.server_position, n.core->promised_view(),
                              n.core->committed_config()};
  after(world_.random.below(kPublishMaxNs), id, [this, id, made] { publish_checkpoint(id, made); });
}

// The checkpoint that truncation relies on stays: the last one reported.
void Cluster::publish_checkpoint(unsigned id, const core::Checkpoint& made) {
  nodes_[id].packing = false;
  keep(id, made);
  report_held(id);
}

void Cluster::keep(unsigned id, const core::Checkpoint& one) {
  std::vector<core::Checkpoint>& kept = nodes_[id].kept;
  kept.push_back(one);
  std::sort(kept.begin(), kept.end(), older);
  if (kept.size() > kKept) kept.erase(kept.begin());
}

void Cluster::report_held(unsigned id) {
  const Node& n = nodes_[id];
  if (!faults_.disk || n.kept.empty()) return;
  const Index at = n.kept.back().at.last.index;
  covered_.on_held(id, n.incarnation, at);
  step(id, core::Checkpointed{at});
}

// As a node does when the log has grown by enough.
void Cluster::checkpoint_if_due(unsigned id) {
  if (!checkpoints_on()) return;
  std::uint64_t before = 0;
  for (const Node& n : nodes_) before = std::max(before, n.kept.empty() ? 0 : n.kept.back().at.pos);
  if (nodes_[id].server_position.pos > before + faults_.ring_bytes / kDueDivisor)
    take_checkpoint(id);
}

// The checkpoint that the server of `id` is restored from; nothing: the server outlived its node.
// A replica whose log may begin there keeps a copy.
std::optional<core::Checkpoint> Cluster::checkpoint_for(unsigned id) {
  auto chosen = choose_checkpoint(id);
  const std::vector<core::Checkpoint>& own = nodes_[id].kept;
  const Index at = chosen ? chosen->at.last.index : Index{0};
  if (at > (own.empty() ? Index{0} : own.back().at.last.index)) keep(id, *chosen);
  return chosen;
}

std::optional<core::Checkpoint> Cluster::choose_checkpoint(unsigned id) {
  const Node& n = nodes_[id];
  if (!checkpoints_on()) return std::nullopt;
  if (n.refused > kRefusedMax) {
    given_up_in_vain_ = keeps_log();
    return std::nullopt;
  }
  core::Checkpoint none;
  none.config.members = core::Members::first(faults_.members);
  const std::vector<core::Checkpoint> all = kept_by_all();
  if (const auto place = checkpoint_to_keep_from(id)) return place;
  if (all.empty()) return none;
  Random& r = world_.random;
  if (n.refused > 0 || n.no_disk || r.chance(500)) return all.back();
  if (r.chance(100)) return none;
  return all[r.below(all.size())];
}

// Its store begins after the chosen checkpoint: the newest one must reach it (CORE-D5).
std::optional<core::Checkpoint> Cluster::checkpoint_reaching(unsigned id) {
  const Index first = nodes_[id].store->state().first.last.index;
  const std::vector<core::Checkpoint> all = kept_by_all();
  if (!all.empty() && all.back().at.last.index >= first) {
    keep(id, all.back());
    return all.back();
  }
  violate("TRUNCATION: no checkpoint reaches the store of replica " + std::to_string(id) +
          ", which begins after " + std::to_string(value(first)));
  return std::nullopt;
}

// Its ring does not hold the entries after the checkpoint: it tries a newer one, or discards its
// memory.
void Cluster::on_refused(unsigned id) {
  Node& n = nodes_[id];
  ++n.refused;
  ++outcome_.refusals;
  const std::uint32_t process = n.process;
  world_.after(1, [this, id, process] {
    if (nodes_[id].process != process || nodes_[id].life == Life::kDown) return;
    crash(id);
    if (nodes_[id].refused > kRefusedLost && may_lose(id)) lose_machine(id);
  });
  world_.after(world_.random.between(1'000'000, 10'000'000), [this, id] {
    if (!ended_) restart(id);
  });
}

// A replica that needs a checkpoint is restarted from one, if there is a newer one.
void Cluster::rescue() {
  const std::vector<core::Checkpoint> all = kept_by_all();
  if (all.empty()) return;
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    Node& n = nodes_[i];
    if (n.life != Life::kUp || !n.core->needs_checkpoint()) continue;
    if (all.back().at.last.index <= n.core->committed()) continue;
    ++outcome_.rescues;
    crash(i);
    n.refused = std::max(n.refused, 1U);  // to begin at the newest one
    world_.after(world_.random.between(1'000'000, 5'000'000), [this, i] {
      if (!ended_) restart(i);
    });
  }
}

}  // namespace crane::consensus::sim
