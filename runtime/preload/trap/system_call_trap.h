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

#include <utility>

#include "dmt/layout.h"
#include "runtime/preload/core/types.h"

namespace crane {

// prctl's option that sets the dispatch, which older headers lack.
inline constexpr int kSetDispatch = 59;  // PR_SET_SYSCALL_USER_DISPATCH

// Finds the texts that are let through.  Once, in the constructor.
void install_trap() noexcept;

// The calling thread is watched from when it goes outside of Crane.  REQUIRES install_trap() and
// the handler of SIGSYS.
void arm_trap() noexcept;

// What SIGSYS is when the net sent it; false: it is somebody else's.
bool handle_trap(const siginfo_t* info, void* context) noexcept;

// Where libcrane.so's own code lies: begin and end.
std::pair<std::uintptr_t, std::uintptr_t> own_text() noexcept;

// Code of libc, ld.so, the vDSO or ourselves: it may hold locks that no turn may be awaited under.
bool is_libc_or_trusted(const void* address) noexcept;

// A call of syscall(2) that no operation stands for: counted as from `caller`.  May not return
// (strict).
void count_by_number(long number, dmt::Outcome outcome, const void* caller) noexcept;

}  // namespace crane
