// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values that a program gets without a call, so that no wrapper or trap sees them: the functions of
// the vDSO (found by getauxval, or used by libc), the RDTSC instruction, the processor's number in
// the area of restartable sequences, the random bytes on the stack. Each is replaced by agreed
// state (DESIGN D6, D7, rule 20).
//
// The vDSO's functions begin with a jump to ours, in this process' copy of its pages. fork keeps
// the copy; a new program has a new vDSO and patches it again. RDTSC becomes a fault (PR_SET_TSC).
// Threads, children and programs inherit this setting; exec allows RDTSC first. At a place where a
// program runs it often, a jump replaces it (tsc_site.h).
//
// Threads: see each function.

#include "runtime/preload/ground/types.h"

namespace crane {

// Called once, in the constructor. Prints a message for each part that fails.
void take_over_vdso() noexcept;

// Makes RDTSC fault, or work, in this thread and its future threads and children.
void forbid_tsc() noexcept;
void allow_tsc() noexcept;

// Stops the kernel from writing this thread's processor into its memory; sched_getcpu then makes a
// call.
void leave_rseq() noexcept;

// Replaces the 16 bytes at AT_RANDOM by agreed ones. REQUIRES that START was admitted.
void replace_random_bytes() noexcept;

// Handles a SIGSEGV of RDTSC or RDTSCP and continues after the instruction; false: another cause.
bool handle_tsc(const siginfo_t* info, void* context) noexcept;

}  // namespace crane
