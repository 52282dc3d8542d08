// SPDX-License-Identifier: Apache-2.0
#pragma once
// The exit statuses of crane-node; crane-run maps these and the code of the "fatal" message to its
// own messages.

#include <string>
#include <utility>

#include "dmt/base/result.h"

namespace crane::node {

enum class ExitStatus : int {
  kStopped = 0,  // stopped on request, or the server ended and the node reported that
  kBadConfiguration = 64,
  kNoSegment = 65,         // the shared memory could not be set up
  kNoConsensus = 66,       // consensus could not be opened
  kServerNotStarted = 67,  // container or process tree could not be started
  kNeverCheckedIn = 68,    // the server ran without loading libcrane.so, or ended at once
  kServerDied = 69,        // a process of the server was killed on this replica only (D18)
  kFenced = 70,            // the replica stopped itself (damage, divergence of resources)
  kLeftGroup = 71,         // the group removed this replica
  kControlLost = 72,       // the crane-run of an analysis replica is gone
  kLagging = 73,           // the server is too far behind the log
  kDisagrees = 74,         // configured differently from the leader; the message has the difference
  kNoListener = 75,        // the node cannot listen at a port for clients on this host
  kMissedEntries = 76,     // recovered, but the log no longer holds all entries that it missed
  kUnhooked = 77,          // strict mode: a system call of the server bypassed libcrane.so
  kNotHere = 78,           // this machine cannot provide the chosen fence or huge pages
  kDiverged = 79,          // its outputs or its schedule differed from the majority's
  kNoCheckpoint = 80,      // it had to recover, but no checkpoint is usable
  kTooFarBehind = 81,      // the others' logs lack entries that it needs; restarts at a checkpoint
  kHandedOver = 82,        // another build of Crane takes over; it restarts with that build
  kNoRoom = 83,            // a disk or the shared memory was full; it restarts when there is room
  kLogFailed = 84,         // consensus gave up this replica (memory lost, log damaged, disk failed)
  kBeginsAgain = 85,       // its server began a computation without a tick point (dmt/slices.h)
};

inline constexpr int code(ExitStatus s) noexcept { return static_cast<int>(s); }

// An error that ends the node with this status.
inline Error failure(ExitStatus status, std::string text) {
  return {Code::kSystem, 0, "crane-node", std::move(text), code(status)};
}
inline ExitStatus exit_status_of(const Error& error) noexcept {
  return static_cast<ExitStatus>(error.exit_status);
}

}  // namespace crane::node
