// SPDX-License-Identifier: Apache-2.0
#pragma once
// The net under the wrappers: system calls that bypass libc (inline assembly, a library with
// calls of its own, code made at run time) are caught by the kernel, by Syscall User Dispatch.
//
//   from libc's text             not looked at: what libc calls for us or for itself, at no cost
//   from a thread inside Crane   let through: the selector byte is InsideCrane's own
//   from ld.so, libcrane, vDSO   SIGSYS, let through: loading is bounded, and rare
//   from anywhere else           SIGSYS: made an operation by its number, or refused, or passed on;
//                                bounded calls apart, counted by name and object (dmt/unhooked.h)
//
// Strict mode ends the replica at the first such call.
//
// Threads: each has its own dispatch, which the kernel forgets at clone, fork and exec.

#include "dmt/layout.h"
#include "runtime/preload/ground/types.h"
#include "runtime/preload/trap/system_call.h"

namespace crane {

// prctl's option that sets the dispatch, which older headers lack.
inline constexpr int kSetDispatch = 59;  // PR_SET_SYSCALL_USER_DISPATCH

// `table` says what each call is.  Once, in the constructor; finds the loaded texts.
void install_trap(SystemCallTable table) noexcept;

// The calling thread is watched from when it goes outside of Crane.  REQUIRES install_trap() and
// the handler of SIGSYS.
void arm_trap() noexcept;

// What SIGSYS is when the net sent it; false: it is somebody else's.
bool handle_trap(const siginfo_t* info, void* context) noexcept;

// A call of syscall(2) that no operation stands for: counted as from `caller`.  May not return
// (strict).
void count_by_number(long number, dmt::Outcome outcome, const void* caller) noexcept;

}  // namespace crane
