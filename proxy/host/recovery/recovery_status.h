// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of a node's status about recovery.
//
// Threads: plain values.

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/container.h"
#include "runtime/control/progress.h"

namespace crane::node {

// The phases of the last published checkpoint, and of a return from one; in us.
struct DumpTimes {
  std::int64_t noting = 0;   // while quiescent, before processes are stopped
  std::int64_t segment = 0;  // copying the segment, in parallel with CRIU
  checkpoint::CheckpointTimes supervisor;
};
struct ReturnTimes {
  std::int64_t unpacking = 0;  // from the node's start until the files were unpacked
  std::int64_t running = 0;    // from then until the server could continue
  checkpoint::CheckpointTimes supervisor;
};

// How this replica would recover if it were lost now, and how it has recovered.
struct RecoveryStatus {
  const char* tier = "none";      // "criu", "restart", "replay" (all inputs again), or "none"
  std::uint64_t entry = 0;        // of the checkpoint; 0: no checkpoint
  std::string why;                // why it is not "criu"
  std::string refused;            // why CRIU refuses this server, if known to this replica
  const char* came_back_by = "";  // like `tier`; "": it began with the group
  bool catches_up = false;        // it is still behind the other replicas
  // Checkpoints that it packs, verifies, gives or fetches.
  std::vector<control::Operation> operations;
};

}  // namespace crane::node
