// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a simulated group: its application's state is where it stands in the log.  A
// replica that is started again gets its server back from one of them, its own or another
// replica's, older or newer than what its memory says; who is behind for good, too.
#include <algorithm>

#include "consensus/sim/cluster.h"

namespace crane::consensus::sim {

namespace {

constexpr std::size_t kKept = 4;
// So often nothing newer was found for a replica whose ring has moved on.
constexpr unsigned kRefusedLost = 3;
constexpr unsigned kRefusedMax = 20;
// A checkpoint is due when this part of a ring was delivered since.
constexpr std::uint64_t kDueDivisor = 4;

}  // namespace

void Cluster::plan_checkpoint() {
  if (!checkpoints_on()) return;
  const std::uint64_t every = faults_.checkpoint_every_ns;
  world_.after(world_.random.between(every / 4, every * 7 / 4), [this] {
    if (ended_) return;
    plan_checkpoint();
    take_checkpoint(static_cast<unsigned>(world_.random.below(faults_.replicas)));
    rescue();
  });
}

void Cluster::take_checkpoint(unsigned id) {
  const Node& n = nodes_[id];
  if (n.life != Life::kUp || n.core->role() == core::Role::kStarting) return;
  if (n.stands.last.index == Index{0}) return;
  tell("replica %u takes a checkpoint behind entry %llu", id,
       static_cast<unsigned long long>(value(n.stands.last.index)));
  checkpoints_.push_back({n.stands, n.core->promised_view(), n.core->committed_config()});
  std::sort(checkpoints_.begin(), checkpoints_.end(),
            [](const auto& a, const auto& b) { return a.at.last.index < b.at.last.index; });
  if (checkpoints_.size() > kKept) checkpoints_.erase(checkpoints_.begin());
}

// As a node does when the log has grown by enough.
void Cluster::checkpoint_if_due(unsigned id) {
  if (!checkpoints_on()) return;
  const std::uint64_t before = checkpoints_.empty() ? 0 : checkpoints_.back().at.pos;
  if (nodes_[id].stands.pos > before + faults_.ring_bytes / kDueDivisor) take_checkpoint(id);
}

// Where the server of `id` is brought back to; nothing: it outlived its node.
std::optional<core::Checkpoint> Cluster::checkpoint_for(unsigned id) {
  const Node& n = nodes_[id];
  if (!checkpoints_on() || n.refused > kRefusedMax) return std::nullopt;
  core::Checkpoint none;
  none.config.members = core::Members::first(faults_.members);
  if (checkpoints_.empty()) return none;
  Random& r = world_.random;
  if (n.refused > 0 || r.chance(500)) return checkpoints_.back();
  if (r.chance(100)) return none;
  return checkpoints_[r.below(checkpoints_.size())];
}

// Its ring does not hold what follows: it tries with a newer one, or gives up what it has.
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

// Who needs a checkpoint and can be given one is started from it.
void Cluster::rescue() {
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    Node& n = nodes_[i];
    if (n.life != Life::kUp || !n.core->needs_checkpoint() || checkpoints_.empty()) continue;
    if (checkpoints_.back().at.last.index <= n.core->committed()) continue;
    ++outcome_.rescues;
    crash(i);
    n.refused = std::max(n.refused, 1U);  // the newest
    world_.after(world_.random.between(1'000'000, 5'000'000), [this, i] {
      if (!ended_) restart(i);
    });
  }
}

}  // namespace crane::consensus::sim
