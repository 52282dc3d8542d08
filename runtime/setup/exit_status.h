// SPDX-License-Identifier: Apache-2.0
#pragma once
// How crane-node ends; crane-run maps these and the "fatal" message's code to its own messages.

#include <string>
#include <utility>

#include "dmt/base/result.h"

namespace crane::node {

enum class ExitStatus : int {
  kStopped = 0,  // told to stop, or the server ended and that was reported
  kBadConfiguration = 64,
  kNoSegment = 65,         // the shared memory could not be set up
  kNoConsensus = 66,       // consensus could not be opened
  kServerNotStarted = 67,  // container or process tree could not be started
  kNeverCheckedIn = 68,    // the server ran without loading libcrane.so, or ended at once
  kServerDied = 69,        // a process of the server was killed on this replica only (D18)
  kFenced = 70,            // the replica stopped itself (damage, divergence of resources)
  kLeftGroup = 71,         // the group removed this replica
  kControlLost = 72,       // an analysis replica's crane-run is gone
  kLagging = 73,           // the server is too far behind the log
  kDisagrees = 74,         // configured otherwise than the leader; the message names what differs
  kNoListener = 75,        // a port for clients cannot be had on this host
  kMissedEntries = 76,     // recovered, and the log no longer holds all that it missed
  kUnhooked = 77,          // strict mode: a system call of the server bypassed libcrane.so
  kNotHere = 78,           // the fence or the huge pages that were chosen cannot be had here
  kDiverged = 79,          // its outputs or its schedule were not the majority's
  kNoCheckpoint = 80,      // it was to recover, and no checkpoint can be used
  kTooFarBehind = 81,      // what it lacks left the others' logs; it restarts at a checkpoint
  kHandedOver = 82,        // another build of Crane goes on from here; it restarts with that one
  kNoRoom = 83,            // a disk or the shared memory was full; it restarts when there is room
  kLogFailed = 84,         // consensus gave up this replica (memory lost, log damaged, disk failed)
  kBeginsAgain = 85,       // its server began a computation without a tick point (dmt/slices.h)
};

inline constexpr int code(ExitStatus s) noexcept { return static_cast<int>(s); }

// Why a node ends, and with which status.
inline Error failure(ExitStatus status, std::string text) {
  return {Code::kSystem, 0, "crane-node", std::move(text), code(status)};
}
inline ExitStatus exit_status_of(const Error& error) noexcept {
  return static_cast<ExitStatus>(error.exit_status);
}

}  // namespace crane::node
