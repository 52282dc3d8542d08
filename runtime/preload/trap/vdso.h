// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a program gets without any call, so that no wrapper and no net sees it: the functions of the
// vDSO (found by getauxval, or used by libc itself), the RDTSC instruction, the processor's number
// in the area of restartable sequences, the random bytes on the stack.  Each is answered from
// agreed state instead (DESIGN D6, D7, rule 20).
//
// The vDSO's functions begin with a jump to ours, in this process' copy of its pages: fork keeps
// them, a new program gets fresh ones and patches them again.  RDTSC is made a fault (PR_SET_TSC),
// which threads and children inherit, and programs too: exec allows it again.  Where a program
// executes it often a jump stands instead (tsc_site.h).
//
// Threads: as said.

#include "runtime/preload/ground/types.h"

namespace crane {

// Once, in the constructor.  What cannot be done is said in a message.
void take_over_vdso() noexcept;

// This thread's, and its future threads' and children's, RDTSC faults or works.
void forbid_tsc() noexcept;
void allow_tsc() noexcept;

// The kernel no longer writes this thread's processor into its memory; sched_getcpu asks then.
void leave_rseq() noexcept;

// The 16 bytes that AT_RANDOM points to become agreed ones.  REQUIRES that START was admitted.
void replace_random_bytes() noexcept;

// SIGSEGV of an RDTSC or RDTSCP: answers it and goes on behind it; false: it was something else.
bool handle_tsc(const siginfo_t* info, void* context) noexcept;

}  // namespace crane
