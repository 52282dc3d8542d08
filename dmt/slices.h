// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time slices (DESIGN D21): a thread that computes and takes no operation gives the turn away all
// the same, at an instruction that is the same on every replica.
//
// A tick point is an instruction of the server's that a stub counts passages of
// (runtime/preload/turn/tick_stub.h).  Each passage takes the point's weight, an estimate of the
// time since the last one, from what is left of the thread's slice.  When nothing is left the
// thread takes a turn there, which uses up the grant: signals, timers and inputs come next, as at
// any operation, and the threads that wait to run go first.
//
// From there until it waits for something the thread is sliced.  The other threads go before it,
// and so do entries that wake one: when only sliced threads are runnable, entries are admitted
// until one wakes another thread, or is a bubble.  A bubble is the place of a sliced thread in the
// queue of inputs.  The leader proposes it when a slice has ended: inputs that came during the
// slice are served before the next slice, later ones behind it, however long either takes.
//
// Which instructions are points is agreed: the leader proposes TICK_POINT entries, each process
// has the points that were admitted before its last turn (or before the library with the
// instruction was loaded).  What a thread executes between two turns is the same everywhere in
// serial mode, hence so are its ticks.  In parallel mode there are no slices.
//
// Threads / Processes: REQUIRES the turn, unless it is said.
// INVARIANT SLICE-1  What is left of a slice, and the points that count, change at turns and at
//               ticks only: never by a clock of the machine.
// INVARIANT SLICE-2  A point stays one for the life of the group: only its weight changes.
// INVARIANT SLICE-3  A sliced thread gets the turn by an admitted bubble alone, behind the others,
//               and before them from the next admission on; or before a thread that gives way in
//               a loop (stall.h).  Then it keeps it for at most a slice, a quantum or a grant.
// INVARIANT SLICE-4  A server that runs behind the clock of an early point had it at that clock.

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

// The operation that `me` will end next uses up the grant: the next entry, which brings time and
// input, is admitted after it.  For loops that look at the clock or poll and find nothing (D17):
// what they wait for is not among the turns that are left.
inline void end_grant(Layout& w) noexcept {
  w.scheduler.ends_grant = w.header.configuration.admission == Admission::kGrant;
}

// Adds the point, or gives it another weight.  Called by admission only.  One more than
// kTickPointsMax has no effect.
void admit_tick_point(Layout& w, const TickPoint& point) noexcept;

// Of a computation without end the thread takes no turn at which it could get a point.  Then the
// point is to count from the turn on that the computation began with, so each replica begins again
// before it (proxy/host/early_points.h).  Called by a node before its server starts.
// `passed`: the server that goes on here had the point at that turn.  False: there are too many.
bool add_early_point(Layout& w, const EarlyPoint& point, bool passed) noexcept;
// This replica's server has it, or had it at its clock.  Any thread.
bool has_early_point(const Layout& w, const EarlyPoint& point) noexcept;
// Those whose clock has come are admitted.
void admit_early_points(Layout& w) noexcept;

// The operation that `me` will end next ends its slice: it uses up the grant, and `me` is sliced.
void end_slice(Layout& w, Slot me) noexcept;
// The slot leaves the run queue: when it is back there, it has waited.
inline void forget_slice(Layout& w, std::uint16_t slot) noexcept {
  if (!w.slots[slot].sliced) return;
  w.slots[slot].sliced = false;
  if (--w.scheduler.sliced_runnable == 0) w.scheduler.slice_grant = SliceGrant::kNone;
}
// The slot gives the turn away in a loop: what it waits for may be a sliced thread's to do.
inline void let_sliced_go(Layout& w, std::uint16_t slot) noexcept {
  SchedulerState& s = w.scheduler;
  if (s.sliced_runnable > (w.slots[slot].sliced ? 1U : 0U)) s.slice_grant = SliceGrant::kFirst;
}
// Called by admission only.
void grant_slice(Layout& w, EntryType type) noexcept;
// The turn is to be given away under a grant: the head of the run queue becomes the slot that gets
// it, or the rest of the grant is dropped (SLICE-3).
void choose_beside_slices(Layout& w) noexcept;

// A slice of the turn's holder will end soon.  Where no entry waits, the leader's node proposes the
// next bubble, so that no thread waits for it then.
void ask_for_bubble(Layout& w) noexcept;

// The slice that ended at a point, which weighed so much in it, took so much processor time here.
// Any thread.
void report_slice(Layout& w, std::uint32_t point, std::uint32_t weight_ps,
                  std::int64_t cpu_ns) noexcept;

}  // namespace crane::dmt
