// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a replica is quiescent, so that it can be saved as it stands, and what
// a replica that was restored is told.
//
// At rest every thread of the server sleeps for the turn in await_turn(): what it waits for, an
// object, time, a file or the turn itself, makes no difference.  None is in the application's code,
// in a call into the kernel that matters, or with its system calls looked at
// (runtime/preload/trap/system_call_trap.h). While the node has the turn no thread can leave that
// sleep, so that what is quiescent stays so.
//
// Threads / Processes: the node, which has the turn itself: it took it where it lay.
//
// INVARIANT DMT-R2  SlotRecord::parked is 1 only while the slot's thread is in the loop of
//               await_turn() that sleeps until it may go: set before the sleep, cleared on the way
//               out and by who wakes it.  Between the store and the sleep, and after a sleep that
//               ended for nothing, it touches nothing but that word.

#include <cstdint>
#include <span>

#include "dmt/layout.h"

namespace crane::dmt {

enum class BlockerKind : std::uint8_t {
  kNothing,          // quiescent
  kTurn,             // the node does not have the turn
  kFenced,           // the replica has failed
  kEnded,            // the main process has ended
  kBeginning,        // a process before its first operation, or between two programs
  kForeign,          // a process without the library
  kFirstThreadGone,  // only its first thread has ended: CRIU takes such a process for a dead one
  kAway,             // a thread that left by agreement (detach) and is not back
  kAwake,            // a thread that does not sleep for the turn yet
  kUnaccepted,       // bytes on a unix connection before its accept(): CRIU keeps none of them
};

// What keeps the replica from rest: the first that was found.  `slot` and `process` as fits `why`,
// else 0.
struct Blocker {
  BlockerKind why;
  std::uint16_t slot, process;
};

// REQUIRES nothing: without the turn the answer is kTurn.  A process that has ended for the
// schedule does not count, though the kernel may be at work on its end: who asks looks for it
// there (node::ServerMonitor::ending).
Blocker find_blocker(const Layout& w) noexcept;

inline bool is_quiescent(const Layout& w) noexcept {
  return find_blocker(w).why == BlockerKind::kNothing;
}

// For a message: "thread 17 (slot 3) of process 12 is away since its fsync".  Cut to fit; ends with
// a 0.  REQUIRES the turn, or that `blocker` says kTurn.
void describe(const Layout& w, const Blocker& blocker, std::span<char> text) noexcept;

// The server in this segment is about to be restored from a checkpoint: each of its threads finds
// out before it leaves Crane (set_restore_handler, hand_off.h).  REQUIRES that it is quiescent.
inline void announce_restore(Layout& w) noexcept { w.scheduler.restores.fetch_add(1); }

}  // namespace crane::dmt
