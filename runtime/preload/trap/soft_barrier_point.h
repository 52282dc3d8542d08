// SPDX-License-Identifier: Apache-2.0
#pragma once
// Soft barriers without source: functions of the server, named by a profile or by crane-run
// --soft-barrier, whose callers wait for each other before the function begins, across all
// processes of the replica.
//
// A breakpoint stands on the function's first instruction, in this process' copy of its page, so
// that it does not matter how the function is called: within its object, through a table, by a
// pointer.  The kernel keeps every register over the soft barrier (arguments are whatever they
// are), and the instruction is run at another place.  A jump at the function by which ld.so
// reports to debuggers that libraries came or went finds functions of libraries that are loaded
// later.
//
// fork keeps the breakpoints; a new program sets its own.  A name that no object of a process
// exports is nothing wrong there: the segment says whether any process has it (SoftBarrierPoint).
//
// INVARIANT POINT-1  A breakpoint's moved instruction is complete before the breakpoint is written,
//               and the table's entry is never taken back: who is on the way to it finds it.
//
// Threads: as said.  Bounds: kBreakpointsMax different addresses in one process.

#include "runtime/preload/ground/types.h"

namespace crane {

// Once, in the constructor, after install_trap().  Nothing is done when no function is named and
// there are no time slices, whose points are looked for in the same libraries (tick_points.h).
void prepare_soft_barrier_points() noexcept;

// What SIGTRAP is when a breakpoint of ours raised it; false: it is somebody else's.
bool handle_breakpoint(const siginfo_t* info, void* context) noexcept;

}  // namespace crane
