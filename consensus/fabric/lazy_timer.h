// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decides when a loop sets its timer, from the due time and the time it was last set to.
//
// The timer must never fire late.  A timer set too early wakes the loop for nothing; setting it
// later costs a system call.  So an earlier time is always set.  A later time is set only where it
// saves a wake-up, and rarely enough that a busy loop makes no more of these calls than it would
// have wake-ups.
//
// Threads: a plain value.
// INVARIANT TIMER-1  The timer fires no later than the due time of the last due() call.

#include <algorithm>
#include <cstdint>

#include "dmt/base/assert.h"

namespace crane::consensus {

class LazyTimer {
 public:
  // The timer is postponed only by at least kLaterByNs, and at most once per kLaterEveryNs.
  static constexpr std::uint64_t kLaterByNs = 1'000'000;
  static constexpr std::uint64_t kLaterEveryNs = 500'000;

  // The timer is due at `due_ns`.  True: the caller must now set it to set_ns().
  bool due(std::uint64_t due_ns, std::uint64_t now_ns) noexcept {
    const bool later = set_ns_ != 0 && due_ns >= set_ns_;
    const bool sets = !later || is_worth_it(due_ns, now_ns);
    if (sets) set_ns_ = std::max<std::uint64_t>(due_ns, 1);
    if (sets && later) later_ns_ = now_ns;
    CRANE_ASSERT(set_ns_ <= std::max<std::uint64_t>(due_ns, 1));  // TIMER-1
    return sets;
  }
  void fired() noexcept { set_ns_ = 0; }
  // 0: not set.
  std::uint64_t set_ns() const noexcept { return set_ns_; }

 private:
  bool is_worth_it(std::uint64_t due_ns, std::uint64_t now_ns) const noexcept {
    return due_ns - set_ns_ >= kLaterByNs && now_ns >= later_ns_ + kLaterEveryNs;
  }

  std::uint64_t set_ns_ = 0;
  std::uint64_t later_ns_ = 0;  // when it was last postponed
};

}  // namespace crane::consensus
