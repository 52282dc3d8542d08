// SPDX-License-Identifier: Apache-2.0
#pragma once
// Soft barriers without source code: functions of the server that a profile or crane-run
// --soft-barrier names. Callers of the function wait for each other before it begins, across all
// processes of the replica.
//
// A breakpoint replaces the function's first instruction in this process' copy of the page, so
// every way to call the function is covered: within its object, through a table, by a pointer. The
// kernel keeps all registers, also the arguments, during the soft barrier; the replaced
// instruction runs at another place. A jump in the function by which ld.so notifies debuggers of
// library changes finds functions of libraries that are loaded later.
//
// fork keeps the breakpoints; a new program sets its own. A process need not have an object that
// exports the name: the segment records whether any process has it (SoftBarrierPoint).
//
// INVARIANT POINT-1  A breakpoint's moved instruction is complete before the breakpoint is written,
//     and the table's entry is never removed, so a thread on its way to the entry finds it.
//
// Threads: see each function. Bounds: kBreakpointsMax different addresses in one process.

#include "runtime/preload/ground/types.h"

namespace crane {

// Called once, in the constructor, after install_trap(). Does nothing when no function is named and
// there are no time slices, whose points are in the same libraries (tick_points.h).
void prepare_soft_barrier_points() noexcept;

// Handles a SIGTRAP of a breakpoint of ours; false: another cause.
bool handle_breakpoint(const siginfo_t* info, void* context) noexcept;

}  // namespace crane
