// SPDX-License-Identifier: Apache-2.0
#pragma once
// Catches system calls that bypass libc (inline assembly, a library with its own calls, code made
// at run time). The kernel reports them by Syscall User Dispatch.
//
//   from libc's text             not checked: libc's calls, for us or for itself, cost nothing
//   from a thread inside Crane   let through: InsideCrane's byte is the selector
//   from ld.so, libcrane, vDSO   SIGSYS, let through: loading is bounded and rare
//   from anywhere else           SIGSYS: the call's number decides whether it becomes an operation,
//                                is refused or passed on; counted by name and object, unless
//                                bounded (dmt/unhooked.h)
//
// In strict mode the first such call ends the replica.
//
// Threads: each has its own dispatch, which the kernel resets at clone, fork and exec.

#include "dmt/layout.h"
#include "runtime/preload/ground/types.h"
#include "runtime/preload/trap/system_call.h"

namespace crane {

// prctl's option that sets the dispatch; older headers do not have it.
inline constexpr int kSetDispatch = 59;  // PR_SET_SYSCALL_USER_DISPATCH

// Installs the trap. `table` classifies the calls. Called once, in the constructor; finds the
// loaded texts.
void install_trap(SystemCallTable table) noexcept;

// Watches the calling thread from when it leaves Crane. REQUIRES install_trap() and the handler of
// SIGSYS.
void arm_trap() noexcept;

// Handles a SIGSYS that the dispatch sent; false: another cause.
bool handle_trap(const siginfo_t* info, void* context) noexcept;

// Counts a call of syscall(2) that is not an operation, as from `caller`. May not return (strict).
void count_by_number(long number, dmt::Outcome outcome, const void* caller) noexcept;

}  // namespace crane
