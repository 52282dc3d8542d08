// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a replica is quiescent, so that it can be saved, and the notice to the threads of a
// restored replica.
//
// In a quiescent replica every thread of the server sleeps for the turn in await_turn().  It may
// wait for an object, time, a file or the turn itself.  No thread is in the application's code, in
// a relevant kernel call, or in the trap for system calls
// (runtime/preload/trap/system_call_trap.h). While the node has the turn no thread can leave that
// sleep, so the replica stays quiescent.
//
// Threads / Processes: the node, which has taken the unowned turn.
//
// INVARIANT DMT-R2  SlotRecord::parked is 1 only while the slot's thread is in the loop of
//               await_turn() that sleeps until it may go.  The thread sets it before the sleep;
//               the thread, on its way out, or its waker clears it.  Between the store and the
//               sleep, and after a spurious wake-up, the thread touches nothing but that word.

#include <cstdint>
#include <span>

#include "dmt/layout.h"

namespace crane::dmt {

enum class BlockerKind : std::uint8_t {
  kNothing,           // quiescent
  kTurn,              // the node does not have the turn
  kFenced,            // the replica has failed
  kEnded,             // the main process has ended
  kBeginning,         // a process before its first operation, or between two programs
  kFirstThreadEnded,  // only its first thread has ended: CRIU takes such a process for dead
  kDetachedThread,    // a thread detached by agreement that is not back
  kAwake,             // a thread that does not yet sleep for the turn
  kUnaccepted,        // bytes on a unix connection before its accept(): CRIU does not save them
};

// The first obstacle to quiescence.  `slot` and `process` depend on `why`, else 0.
struct Blocker {
  BlockerKind why;
  std::uint16_t slot, process;
};

// REQUIRES nothing: without the turn it returns kTurn.  A process that has ended for the schedule
// does not count, although the kernel may still be ending it; the caller must check that
// (node::ServerMonitor::ending).
Blocker find_blocker(const Layout& w) noexcept;

inline bool is_quiescent(const Layout& w) noexcept {
  return find_blocker(w).why == BlockerKind::kNothing;
}

// Describes the blocker: "thread 17 (slot 3) of process 12 is detached; its last operation was
// fsync".  Cut to fit; ends with a 0.  REQUIRES the turn, or that `blocker` is kTurn.
void describe(const Layout& w, const Blocker& blocker, std::span<char> text) noexcept;

// Announces that the server in this segment will be restored from a checkpoint: each thread notices
// it before it leaves Crane (set_restore_handler, hand_off.h).  REQUIRES that it is quiescent.
inline void announce_restore(Layout& w) noexcept { w.scheduler.restores.fetch_add(1); }

}  // namespace crane::dmt
