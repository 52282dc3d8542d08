// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tick points of this process (dmt/slices.h). Their stubs are placed in the process' copy of
// the code; a thread whose slice is over takes a turn there.
//
// Code changes only while no other thread of the process runs in it: in serial mode, by the thread
// that has the turn. The other threads wait in a call of libcrane.so or at the int3 of a stub, and
// stubs never move. If threads of a process may run without the turn (--detach any-computation,
// --spins), only calls are changed, because their 32 bits are written atomically.
//
// INVARIANT TICK-1  A point counts in a process from the first turn of the process after the
//     point's admission, or from the loading of its object, whichever is later.
// INVARIANT TICK-2  No turn is taken at a point while the thread is inside Crane, is detached, is
//     between the handlers of fork, or holds a stream (flockfile) or a lock of ld.so (in a
//     constructor of a library that dlopen loads).
// INVARIANT TICK-3  No slice ends while a thread leaves the schedule on a preempt request
//     (dmt/stall.h). The thread leaves where the request finds it, which is before the end of the
//     slice on one replica and after it on another.
//
// Threads: see each function. Bounds: dmt::kTickPointsMax.

#include <csignal>

#include "dmt/layout.h"
#include "dmt/slices.h"
#include "runtime/preload/self/thread.h"
#include "runtime/preload/turn/branch_slices.h"

namespace crane::ticks {

// Called once, in the constructor.
void prepare() noexcept;

// Installs stubs for points that were added and objects that were loaded, and updates weights.
// REQUIRES serial mode, that no other thread of the process runs, and that the caller is inside
// Crane.
void look_for_points() noexcept;

// The count of changes to the points at this process' last look.
extern std::uint32_t changes_seen;

// A slice has this many parts. A thread also stops before the last part, to request the log entry
// after the slice. With an earlier request, inputs of the rest would come after that entry.
inline constexpr std::int64_t kSliceParts = 4;

// Begins the next slice after a wait of the thread or a turn of another thread.
inline void begin_slice(const dmt::Layout& w) noexcept {
  if (w.header.configuration.branch_event != 0) branches::begin();
  const auto slice_ps = static_cast<std::int64_t>(w.header.configuration.slice_ps);
  self.slice_rest_ps = slice_ps / kSliceParts;
  self.slice_left_ps = slice_ps - self.slice_rest_ps;
}

// Called in serial mode when an operation has put the turn and has it again. REQUIRES the turn.
inline void after_operation(dmt::Layout& w) noexcept {
  if (w.scheduler.last_slot != self.slot) begin_slice(w);
  if (w.early_points.waiting != 0) dmt::admit_early_points(w);
  if (w.tick_points.changes != changes_seen) look_for_points();
}

// Handles a SIGTRAP that ends this thread's slice at a point; false: another cause.
bool handle_break(const siginfo_t* info, void* context) noexcept;

// Ends, at `place`, a slice that no point has ended: takes a turn. REQUIRES that the caller is
// inside Crane.
inline constexpr std::uint32_t kNoPoint = dmt::kTickPointsMax;
void take_turn_of_slice(const void* place, std::uint32_t point) noexcept;
// Whether a slice may end at `place`, where the calling thread was interrupted outside Crane:
// TICK-2, and the place is not in libc, ld.so or Crane.
bool may_end_at(const void* place) noexcept;

// Called before a fault is reported: shows the program an instruction in a stub at its own place.
void show_program(void* context) noexcept;

// Called when the handler of a fault returns. The program continues at `place`, where it was before
// the handler saw `shown`, or where the handler chose. Inside a point that is in the stub, because
// a jump covers the instructions.
void resume_program(void* context, std::uintptr_t place, std::uintptr_t shown) noexcept;

}  // namespace crane::ticks
