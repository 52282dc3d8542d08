// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time slices (DESIGN D21): a thread that computes and takes no operation gives the turn away all
// the same, at an instruction that is the same on every replica.
//
// A tick point is an instruction of the server's that a stub counts passages of
// (runtime/preload/trap/tick_stub.h).  Each passage takes the point's weight, an estimate of the
// time since the last one, from what is left of the thread's slice.  When nothing is left the
// thread takes a turn there, which uses up the grant: signals, timers and inputs come next, as at
// any operation, and the threads that wait to run go first.
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
// INVARIANT SLICE-3  A server that runs behind the clock of an early point had it at that clock.

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

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

// A slice of the turn's holder ended and it goes on with the next: the leader's node proposes the
// entry that will be admitted at the end of that one, so that no thread waits for it then.
void ask_for_next_entry(Layout& w) noexcept;

// The slice that ended at a point, which weighed so much in it, took so much processor time here.
// Any thread.
void report_slice(Layout& w, std::uint32_t point, std::uint32_t weight_ps,
                  std::int64_t cpu_ns) noexcept;

}  // namespace crane::dmt
