// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a thread comes into the schedule and leaves it.
//
// Threads: the calling one.

#include "runtime/preload/self/thread.h"

namespace crane {

// The calling thread was started past the library: it is reported, once.  `caller` called a stub.
// May not return (strict).
void report_stray_thread(const void* caller) noexcept;
inline void look_for_stray_thread(const void* caller) noexcept {
  if (self.slot == dmt::kNone && !self.known && segment != nullptr) report_stray_thread(caller);
}

// pthread_create for threads of our own: no turn may be held (wrap_pthread.cc).
int create_thread(pthread_t* p, const pthread_attr_t* a, StartRoutine f, void* x) noexcept;
// Gives the calling thread its slot; from the return of the stub on its calls are wrapped.
void adopt_slot(std::uint16_t slot, std::uint16_t process) noexcept;
// The calling thread has no slot any more: all its calls are real from here on.
void abandon_slot() noexcept;
// Creates the key whose destructor ends a thread.  Once, before there are threads.
void prepare_thread_end() noexcept;
// Marks the calling thread as one whose end is an operation.
void arm_thread_end() noexcept;
}  // namespace crane
