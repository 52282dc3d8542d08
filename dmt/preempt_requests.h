// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests of the group that a thread gives way at a clock (stall.h has the rule), and the clock
// that a follower's operations wait at.
//
// Threads / Processes: as stated per function.

#include <cstdint>

#include "dmt/layout.h"
#include "dmt/node_link.h"

namespace crane::dmt {

inline constexpr std::uint64_t kNoClock = UINT64_MAX;

// Sites are found again with some play: a loop is seen at a few of its instructions only.
inline bool is_within(const StallSite& site, std::uint64_t instruction) noexcept {
  return instruction + kSiteMargin >= site.low && instruction <= site.high + kSiteMargin;
}

// `me` has the turn and is named by the order of this clock.
bool has_preempt_request(const Layout& w, Slot me) noexcept;
// `me` has the turn at, or after, the clock of an order that it cannot obey (DMT-W1).  REQUIRES
// that it is in the application's code or about to begin an operation: then it has the turn for
// good, while who ends one may have moved the clock and not yet passed the turn.
bool is_past_preempt_request(const Layout& w, Slot me) noexcept;
[[noreturn]] void fence_past_preempt_request(Layout& w) noexcept;
// Wakes the thread that has the turn, if it sleeps.
void wake_holder(Layout& w) noexcept;

// Sets the clock that operations wait at, and wakes who waits for it; kNoClock: none.
void set_leader_clock_limit(Layout& w, std::uint64_t clock) noexcept;
inline std::uint64_t leader_clock_limit(const Layout& w) noexcept {
  return w.scheduler.leader_clock_limit.load(std::memory_order_relaxed);
}
// As far as its turns are taken, seen from outside of the turn.
inline std::uint64_t clock_now(const Layout& w) noexcept {
  return __atomic_load_n(&w.scheduler.clock, __ATOMIC_ACQUIRE);
}
// A follower's server is where its leader's was last known to be: its next operation waits there.
inline bool is_at_leader_clock_limit(const Layout& w) noexcept {
  return leader_clock_limit(w) != kNoClock && clock_now(w) >= leader_clock_limit(w);
}

// Publishes the next order; the one before was obeyed.  REQUIRES told <= body.clock, or that the
// slot is caught (DMT-W2).
void request_preemption(Layout& w, const PreemptBody& body) noexcept;
// How many orders were obeyed in all.
inline std::uint64_t preempt_requests_obeyed(const Layout& w) noexcept {
  return w.scheduler.preempt_requests_obeyed.load(std::memory_order_acquire);
}

}  // namespace crane::dmt
