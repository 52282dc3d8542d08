// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/replicas/model_supervisor.h"

#include <algorithm>

#include "proxy/sim/replicas/world.h"

namespace crane::replica::sim {
namespace {

constexpr std::int64_t kLastsNs = 10'000 * kMs, kPauseNs = 1'000 * kMs, kPauseMostNs = 60'000 * kMs;
constexpr std::int64_t kAskAgainNs = 5'000 * kMs;

}  // namespace

void ModelSupervisor::node_ended(unsigned id, ModelReplica::End how) {
  Node& n = nodes_[id];
  if (world_.now_ns() - n.began_ns > kLastsNs) n.in_a_row = n.failed = 0;
  const bool asked = how == ModelReplica::End::kRestarts;
  if (!asked) ++n.in_a_row;
  if (how == ModelReplica::End::kCannotBegin) ++n.failed;
  if (how == ModelReplica::End::kKilled) n.failed = 0;
  const std::int64_t pause = asked || n.in_a_row <= 1
                                 ? 0
                                 : std::min(kPauseMostNs, kPauseNs << std::min(n.in_a_row - 2, 6U));
  n.due_ns = world_.now_ns() + pause;
  n.planned = true;
}

void ModelSupervisor::step() {
  if (!world_.supervised()) return;
  for (unsigned id = 0; id < world_.replicas(); ++id) {
    Node& n = nodes_[id];
    if (!n.planned || world_.now_ns() < n.due_ns) continue;
    n.planned = false;
    n.began_ns = world_.now_ns();
    const unsigned leader = world_.log().leader();
    const bool none = world_.checkpoints().empty();
    if (none && leader != kNone && world_.replica(leader).up() &&
        world_.now_ns() >= asked_ns_ + kAskAgainNs) {
      asked_ns_ = world_.now_ns();
      world_.replica(leader).ask_for_checkpoint();
    }
    BeginRules rules;
    rules.restores = rules.may_begin = true;
    rules.skips = n.failed > 1 && n.failed % 2 == 0;
    world_.replica(id).start(rules);
  }
}

}  // namespace crane::replica::sim
