// SPDX-License-Identifier: Apache-2.0
#pragma once
// What threads have set about their scheduling (dmt::ThreadScheduling), checked as Linux does.
//
// Threads: REQUIRES the turn, but for the first two.

#include <cstdint>

#include "dmt/layout.h"
#include "runtime/preload/ground/types.h"

namespace crane {

struct Scheduling {
  int policy;  // 0: SCHED_OTHER; may have SCHED_RESET_ON_FORK
  int priority;
};
// An error number: what Linux says to a thread that wants this.
int check_scheduling(const Scheduling& wanted) noexcept;
// What `attributes` ask for a new thread; false: as its creator.
bool take_scheduling(const pthread_attr_t& attributes, Scheduling& wanted) noexcept;

// A new thread, or the first of a child of fork, has what its creator has.
void inherit_scheduling(dmt::Layout& w, std::uint16_t from, std::uint16_t to, bool forks) noexcept;

// REQUIRES: check_scheduling() allows it.
void set_scheduling(dmt::Layout& w, std::uint16_t slot, const Scheduling& wanted) noexcept;

// sched_getattr and sched_setattr, which libc does not have: the words of the call.
long get_attributes_by_number(const long* words) noexcept;
long set_attributes_by_number(const long* words) noexcept;

}  // namespace crane
