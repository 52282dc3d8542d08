// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-run in a world of replicas: it starts nodes that ended, after a pause where they do not
// last.
//
// Threads: one.

#include <array>
#include <cstdint>

#include "proxy/sim/replicas/model_replica.h"

namespace crane::replica::sim {

class ModelSupervisor {
 public:
  explicit ModelSupervisor(ReplicaWorld& world) : world_(world) {}

  void node_ended(unsigned id, ModelReplica::End how);
  void step();

 private:
  struct Node {
    bool planned = false;
    std::int64_t due_ns = 0, began_ns = 0;
    unsigned in_a_row = 0, failed = 0;
  };
  ReplicaWorld& world_;
  std::array<Node, kReplicasMost> nodes_{};
  std::int64_t asked_ns_ = 0;
};

}  // namespace crane::replica::sim
