// SPDX-License-Identifier: Apache-2.0
#pragma once
// The scheduling parameters that threads have set (dmt::ThreadScheduling), checked as Linux does.
//
// Threads: REQUIRES the turn, except check_scheduling() and take_scheduling().

#include <cstdint>

#include "dmt/layout.h"
#include "runtime/preload/ground/types.h"

namespace crane {

struct Scheduling {
  int policy;  // 0: SCHED_OTHER; may contain SCHED_RESET_ON_FORK
  int priority;
};
// Returns the error number that Linux returns for these parameters.
int check_scheduling(const Scheduling& wanted) noexcept;
// Reads the parameters that `attributes` set for a new thread; false: inherit the creator's.
bool take_scheduling(const pthread_attr_t& attributes, Scheduling& wanted) noexcept;

// Gives a new thread, or the first thread of a child of fork, the parameters of its creator.
void inherit_scheduling(dmt::Layout& w, std::uint16_t from, std::uint16_t to, bool forks) noexcept;

// REQUIRES: check_scheduling() allows it.
void set_scheduling(dmt::Layout& w, std::uint16_t slot, const Scheduling& wanted) noexcept;

// sched_getattr and sched_setattr, for which libc has no functions.  `words` are the arguments of
// the system call.
long get_attributes_by_number(const long* words) noexcept;
long set_attributes_by_number(const long* words) noexcept;

}  // namespace crane
