// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tick points of this process (dmt/slices.h): their stubs are put into its copy of the code,
// and a thread whose slice is over takes a turn there.
//
// Code changes only while no other thread of the process runs in it: in serial mode, by the thread
// that has the turn.  The others stand in a call of libcrane.so or at the int3 of a stub, and stubs
// never move.  Where threads of one process may run beside the turn (--detach any-computation,
// --spins) only calls are changed, whose 32 bits are written at once.
//
// INVARIANT TICK-1  A point counts in a process from the first turn of it behind the point's
//               admission, or from the loading of its object, whichever is later.
// INVARIANT TICK-2  No turn is taken at a point where the thread is inside Crane, is detached, is
//               between the handlers of fork, or holds a stream by flockfile or a lock
//               of ld.so's (in a constructor of a library that dlopen loads).
// INVARIANT TICK-3  No slice ends in the stretch in which the thread leaves by an order
// (dmt/stall.h):
//               it leaves where the order finds it, before that end on one replica and behind it on
//               another.
//
// Threads: as said.  Bounds: dmt::kTickPointsMax.

#include <csignal>

#include "dmt/layout.h"
#include "dmt/slices.h"
#include "runtime/preload/self/thread.h"
#include "runtime/preload/turn/branch_slices.h"

namespace crane::ticks {

// Once, in the constructor.
void prepare() noexcept;

// Puts stubs where points were added or objects loaded, and takes new weights over.  REQUIRES
// serial mode, that no other thread of the process runs, and that the caller is inside Crane.
void look_for_points() noexcept;

// How often the points had changed when this process looked last.
extern std::uint32_t changes_seen;

// A thread is stopped before the last of so many parts of a slice as well: the entry behind the
// slice is asked for there.  Sooner, and inputs of the rest would come behind it.
inline constexpr std::int64_t kSliceParts = 4;

// The next slice begins: the thread has waited, or another one has had the turn.
inline void begin_slice(const dmt::Layout& w) noexcept {
  if (w.header.configuration.branch_event != 0) branches::begin();
  const auto slice_ps = static_cast<std::int64_t>(w.header.configuration.slice_ps);
  self.slice_rest_ps = slice_ps / kSliceParts;
  self.slice_left_ps = slice_ps - self.slice_rest_ps;
}

// An operation has put the turn and has it again, in serial mode.  REQUIRES the turn.
inline void after_operation(dmt::Layout& w) noexcept {
  if (w.scheduler.last_slot != self.slot) begin_slice(w);
  if (w.early_points.waiting != 0) dmt::admit_early_points(w);
  if (w.tick_points.changes != changes_seen) look_for_points();
}

// What SIGTRAP is when the slice of this thread ended at a point; false: it is something else.
bool handle_break(const siginfo_t* info, void* context) noexcept;

// A slice that no point has ended does at `place`: takes a turn.  REQUIRES that the caller is
// inside Crane.
inline constexpr std::uint32_t kNoPoint = dmt::kTickPointsMax;
void take_turn_of_slice(const void* place, std::uint32_t point) noexcept;
// Whether it may: TICK-2, and the place is in no libc, ld.so or Crane.  `place` is where the
// calling thread was interrupted outside of Crane.
bool may_end_at(const void* place) noexcept;

// A fault is about to be told: an instruction in a stub is at its own place, for the program.
void show_program(void* context) noexcept;

// Its handler returns: it goes on at `place`, where it was before it was shown `shown`, or where
// the handler chose.  Within a point that is the stub, since a jump covers the instructions.
void resume_program(void* context, std::uintptr_t place, std::uintptr_t shown) noexcept;

}  // namespace crane::ticks
