// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a node's status says of its recovery.
//
// Threads: plain values.

#include <cstdint>
#include <string>

#include "checkpoint/container.h"

namespace crane::node {

// Where the time of the last published checkpoint went, and of recovering from one; in us.
struct DumpTimes {
  std::int64_t noting = 0;   // quiescent, before anything was stopped
  std::int64_t segment = 0;  // copying it, beside CRIU
  checkpoint::CheckpointTimes supervisor;
};
struct ReturnTimes {
  std::int64_t unpacking = 0;  // from this node's start on: until the files were there,
  std::int64_t running = 0;    // and until the server could go on
  checkpoint::CheckpointTimes supervisor;
};

// What a replica that is lost now would recover by, and what this one recovered by.
struct RecoveryStatus {
  const char* tier = "none";      // "criu", "restart", "replay" (all inputs again), or "none"
  std::uint64_t entry = 0;        // of the checkpoint; 0: of none
  std::string why;                // why it is not "criu"
  std::string refused;            // what CRIU has against this server, as far as it is known here
  const char* came_back_by = "";  // as `tier`; "": it began with the group
  bool catches_up = false;        // with what the others did meanwhile
};

}  // namespace crane::node
