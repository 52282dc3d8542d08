// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time slices (DESIGN D21): a thread that computes without operations still gives the turn away, at
// an instruction that is the same on every replica.
//
// A tick point is an instruction of the server at which a stub counts passages
// (runtime/preload/turn/tick_stub.h).  Each passage subtracts the point's weight, an estimate of
// the time since the last passage, from the rest of the thread's slice.  When nothing is left, the
// thread takes a turn there, and the turn uses up the grant.  As at any operation, signals, timers
// and inputs come next, and the runnable threads go first.
//
// From there until it waits for something, the thread is sliced.  The other threads go before it,
// and so do entries that wake one: when only sliced threads are runnable, entries are admitted
// until one wakes another thread or is a bubble.  A bubble is a sliced thread's place in the queue
// of inputs.  The leader proposes it when a slice has ended.  Inputs that came during the slice are
// served before the next slice and later inputs after it, however long either takes.
//
// The points are agreed: the leader proposes TICK_POINT entries.  Each process uses the points that
// were admitted before its last turn (or before the library with the instruction was loaded).  In
// serial mode a thread executes the same code between two turns on every replica, so its ticks are
// the same.  In parallel mode there are no slices.
//
// Threads / Processes: REQUIRES the turn, unless stated otherwise.
// INVARIANT SLICE-1  The rest of a slice and the points that count change only at turns and at
//               ticks, never by a clock of the machine.
// INVARIANT SLICE-2  A point stays a point for the life of the group; only its weight changes.
// INVARIANT SLICE-3  A sliced thread gets the turn only by an admitted bubble, after the others,
//               and before them from the next admission on; or before a thread that gives way in a
//               loop (stall.h).  Then it keeps the turn for at most a slice, a quantum or a grant.
// INVARIANT SLICE-4  A server that runs past the clock of an early point had it at that clock.

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

// Makes the operation that `me` ends next use up the grant, so the next entry, with time and input,
// is admitted after it.  For loops that poll or read the clock without success (D17): the event
// that they wait for is not among the remaining turns.
inline void end_grant(Layout& w) noexcept {
  w.scheduler.ends_grant = w.header.configuration.admission == Admission::kGrant;
}

// Adds the point or changes its weight; has no effect if kTickPointsMax points exist.  Called by
// admission only.
void admit_tick_point(Layout& w, const TickPoint& point) noexcept;

// In a computation without end, the thread takes no turn at which it could get a point.  The point
// must then count from the turn at which the computation began, so each replica restarts before
// that turn (proxy/host/recovery/early_points.h).  A node calls it before its server starts.
// `passed`: the server that continues on this replica had the point at that turn.  Returns false if
// there are too many points.
bool add_early_point(Layout& w, const EarlyPoint& point, bool passed) noexcept;
// Whether this replica's server has the point, or had it at its clock.  Any thread.
bool has_early_point(const Layout& w, const EarlyPoint& point) noexcept;
// Admits the early points whose clock has come.
void admit_early_points(Layout& w) noexcept;

// Makes the operation that `me` ends next end its slice: it uses up the grant, and `me` is sliced.
void end_slice(Layout& w, Slot me) noexcept;
// Call it when the slot leaves the run queue: its thread is no longer sliced.
inline void forget_slice(Layout& w, std::uint16_t slot) noexcept {
  if (!w.slots[slot].sliced) return;
  w.slots[slot].sliced = false;
  if (--w.scheduler.sliced_runnable == 0) w.scheduler.slice_grant = SliceGrant::kNone;
}
// Call it when the slot gives the turn away in a loop: it may wait for a sliced thread.
inline void prefer_sliced_thread(Layout& w, std::uint16_t slot) noexcept {
  SchedulerState& s = w.scheduler;
  if (s.sliced_runnable > (w.slots[slot].sliced ? 1U : 0U)) s.slice_grant = SliceGrant::kFirst;
}
// Called by admission only.
void grant_slice(Layout& w, EntryType type) noexcept;
// Call it before the turn is given away under a grant.  It moves the slot that gets the turn to the
// head of the run queue, or drops the rest of the grant (SLICE-3).
void choose_beside_slices(Layout& w) noexcept;

// The turn holder's slice will end soon.  If no entry waits, the leader's node proposes the next
// bubble now, so that the thread does not wait for it later.
void ask_for_bubble(Layout& w) noexcept;

// Reports a slice that ended at `point`, the point's weight in it, and the processor time that it
// took on this replica.  Any thread.
void report_slice(Layout& w, std::uint32_t point, std::uint32_t weight_ps,
                  std::int64_t cpu_ns) noexcept;

}  // namespace crane::dmt
