// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time slices that end at a count of branches (DESIGN D21; --branch-counter), in addition to those
// that end at a known place of the program (tick points, dmt/slices.h). They may end in any code of
// the program, also in code of a JIT compiler.
//
// Only the program's own branches count. Crane's branches are subtracted from where a thread enters
// Crane to where it leaves (InsideCrane). In a signal handler of Crane, branches are subtracted
// from the reading of the counter at its begin to the one at its end; the few instructions outside
// have no conditional branch.
//
//   far from the end    no steps: the counter's interrupt comes shortly before the end
//   near                EFLAGS.TF: SIGTRAP after each instruction, until the count is reached and
//                       the slice may end (branch_steps.h)
//   inside Crane        no TF; leaving Crane sets it again
//
// Cost: two reads of the counter for each entry of Crane, each a system call. rdpmc would be
// cheaper, but its page does not exist in the child of fork, and a reading may have to be repeated.
//
// The program sees neither the signals nor TF. TF is removed from the value that pushf pushed and
// from the context of a fault's handler, and set again where the handler returns to.
//
// INVARIANT BRANCH-2  Only branches that depend on the program alone are counted: not Crane's
//     waits, its handlers of interrupts and steps, or repeated reads of the counter.
//
// Threads: each call affects the calling thread; prepare() once per process.

#include <csignal>

#include "runtime/preload/ground/inside.h"
#include "runtime/preload/self/thread.h"

namespace crane::branches {

// Called in the constructor, when the other handlers are installed: chooses the counter and opens
// that of this thread. Does nothing if the replica does not count branches.
void prepare() noexcept;

// Opens the counter of the calling thread, which has a slot but no counter: a new thread, the child
// of fork, or a restored thread, whose counter the kernel does not know.
void open_for_thread() noexcept;
void close_for_thread() noexcept;
// Called first in the child of fork, because the counters are its parent's.
void forget_counters() noexcept;

// Begins the next slice. May be called anywhere.
void begin() noexcept;

// Handles a SIGTRAP that ends this thread's slice at an instruction; false: another cause.
bool handle_end(const siginfo_t* info, void* context) noexcept;

// Hides TF from the program's handler of a fault; show_stepping() sets it again afterwards.
bool hide_stepping(void* context) noexcept;
void show_stepping(void* context, bool hidden) noexcept;

}  // namespace crane::branches
