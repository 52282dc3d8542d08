// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time slices that end at a count of branches (DESIGN D21; --branch-counter): beside tick points,
// and in any code of the program, also what a JIT compiler made.
//
// Only the program's own branches count.  What Crane executes is taken out from where a thread
// enters it to where it leaves (InsideCrane); what a handler of ours executes, from its first
// instructions to its last, which are no conditional branches.
//
//   far from the end    nothing: the counter's interrupt comes before it
//   near                EFLAGS.TF: SIGTRAP after each instruction, until the count is there and the
//                       slice may end (branch_steps.h)
//   inside Crane        no TF; leaving Crane sets it again
//
// What it costs: two reads of the counter for each entry of Crane, a system call each; rdpmc would
// be cheaper, but its page is not there in the child of fork and its reading may have to be
// repeated.
//
// The program sees neither the signals nor TF: it is taken out of what pushf has pushed and of the
// context of a fault's handler, and put where a handler returns to.
//
// INVARIANT BRANCH-2  What does not depend on the program alone is not counted: Crane's waits, its
//               handlers of interrupts and steps, and reads of the counter that are repeated.
//
// Threads: the own thread's; prepare() once per process.

#include <csignal>

#include "runtime/preload/ground/inside.h"
#include "runtime/preload/self/thread.h"

namespace crane::branches {

// In the constructor, when the other handlers are installed: chooses the counter, opens that of
// this thread.  Nothing where the replica counts none.
void prepare() noexcept;

// The calling thread has a slot and has none of its own yet: a new one, the child of fork; or it
// was restored, and the kernel has forgotten it.
void open_for_thread() noexcept;
void close_for_thread() noexcept;
// In the child of fork, first: the counters are its parent's.
void forget_counters() noexcept;

// The next slice begins here.  Anywhere.
void begin() noexcept;

// What SIGTRAP is when the slice of this thread has ended at an instruction; false: something else.
bool handle_end(const siginfo_t* info, void* context) noexcept;

// A fault's handler of the program's runs: it does not see TF, which is put back behind it.
bool hide_stepping(void* context) noexcept;
void show_stepping(void* context, bool hidden) noexcept;

}  // namespace crane::branches
