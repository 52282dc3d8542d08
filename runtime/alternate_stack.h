// SPDX-License-Identifier: Apache-2.0
#pragma once
// Handlers of virtual signals are called, not entered by the kernel: who asked for the stack of
// sigaltstack (SA_ONSTACK) is called on it.  That the thread is on it is seen by its stack pointer,
// as the kernel does; a handler may jump out of it.
//
// Threads: any.

#include <ucontext.h>

#include <csignal>

namespace crane {

// The address that a handler's stack begins below, or null: it was not asked for, there is none, or
// the thread is on it already.
void* alternate_stack_of(const struct sigaction& action) noexcept;

// Calls the handler with `top` as its stack.
void call_on_stack(void* top, const struct sigaction& action, int signo, siginfo_t* info,
                   void* context) noexcept;

// The return from a handler of the kernel's sets the stack that was there when it began: from here
// on the one that is there now.
void keep_alternate_stack(ucontext_t& context) noexcept;

}  // namespace crane
