// SPDX-License-Identifier: Apache-2.0
#pragma once
// Adds threads to the schedule and removes them.
//
// Threads: the calling one.

#include "runtime/preload/self/thread.h"

namespace crane {

// Reports, once, that the calling thread was not started by this library. `caller` called a stub.
// May not return (strict).
void report_stray_thread(const void* caller) noexcept;
inline void look_for_stray_thread(const void* caller) noexcept {
  if (self.slot == dmt::kNone && !self.known && segment != nullptr) report_stray_thread(caller);
}

// pthread_create for Crane's own threads; must not be called within a turn (wrap_pthread.cc).
int create_thread(pthread_t* p, const pthread_attr_t* a, StartRoutine f, void* x) noexcept;
// Gives the calling thread its slot; its calls are wrapped after the stub returns.
void adopt_slot(std::uint16_t slot, std::uint16_t process) noexcept;
// Takes the slot from the calling thread; all its calls are real from now on.
void abandon_slot() noexcept;
// Creates the key whose destructor ends a thread. Called once, before there are threads.
void prepare_thread_end() noexcept;
// Makes the end of the calling thread an operation.
void arm_thread_end() noexcept;
}  // namespace crane
