// SPDX-License-Identifier: Apache-2.0
#pragma once
// When a loop sets its timer: a pure function of when it is due and of what it was set to.
//
// The timer must never fire late.  One that is set to an earlier time than it need be wakes the
// loop for nothing; one that is set later costs a system call.  So an earlier time is always set, a
// later one only where it spares a wake-up, and rarely enough that a loop which turns all the time
// makes no more of these calls than it would be woken.
//
// Threads: a plain value.
// INVARIANT TIMER-1  The timer fires at the latest when it was last said to be due.

#include <algorithm>
#include <cstdint>

#include "dmt/base/assert.h"

namespace crane::consensus {

class LazyTimer {
 public:
  // A timer is not set later by less, and not so soon after it last was.
  static constexpr std::uint64_t kLaterByNs = 1'000'000;
  static constexpr std::uint64_t kLaterEveryNs = 500'000;

  // It is due at `due_ns`; true: it is to be set to set_ns() now.
  bool due(std::uint64_t due_ns, std::uint64_t now_ns) noexcept {
    const bool later = set_ns_ != 0 && due_ns >= set_ns_;
    const bool sets = !later || is_worth_it(due_ns, now_ns);
    if (sets) set_ns_ = std::max<std::uint64_t>(due_ns, 1);
    if (sets && later) later_ns_ = now_ns;
    CRANE_ASSERT(set_ns_ <= std::max<std::uint64_t>(due_ns, 1));  // TIMER-1
    return sets;
  }
  void fired() noexcept { set_ns_ = 0; }
  // 0: it is not set.
  std::uint64_t set_ns() const noexcept { return set_ns_; }

 private:
  bool is_worth_it(std::uint64_t due_ns, std::uint64_t now_ns) const noexcept {
    return due_ns - set_ns_ >= kLaterByNs && now_ns >= later_ns_ + kLaterEveryNs;
  }

  std::uint64_t set_ns_ = 0;
  std::uint64_t later_ns_ = 0;  // when it was last set later
};

}  // namespace crane::consensus
