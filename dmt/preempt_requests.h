// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests of the group that a thread gives way at a clock (the rule is in stall.h), and the clock
// at which a follower's operations wait.
//
// Threads / Processes: as stated per function.

#include <cstdint>

#include "dmt/layout.h"
#include "dmt/node_link.h"

namespace crane::dmt {

inline constexpr std::uint64_t kNoClock = UINT64_MAX;

// Sites match with some margin, because probes see only a few instructions of a loop.
inline bool is_within(const StallSite& site, std::uint64_t instruction) noexcept {
  return instruction + kSiteMargin >= site.low && instruction <= site.high + kSiteMargin;
}

// Whether `me` has the turn and the request for this clock names it.
bool has_preempt_request(const Layout& w, Slot me) noexcept;
// Whether `me` has the turn at or after the clock of a request that it cannot obey (DMT-W1).
// REQUIRES that `me` is in the application's code or about to begin an operation, so that it keeps
// the turn.  A thread that ends an operation may have moved the clock and not yet passed the turn.
bool is_past_preempt_request(const Layout& w, Slot me) noexcept;
[[noreturn]] void fence_past_preempt_request(Layout& w) noexcept;
// Wakes the turn holder if it sleeps.
void wake_holder(Layout& w) noexcept;

// Sets the clock at which operations wait, and wakes the waiting thread; kNoClock: none.
void set_leader_clock_limit(Layout& w, std::uint64_t clock) noexcept;
inline std::uint64_t leader_clock_limit(const Layout& w) noexcept {
  return w.scheduler.leader_clock_limit.load(std::memory_order_relaxed);
}
// The clock, readable without the turn.
inline std::uint64_t clock_now(const Layout& w) noexcept {
  return __atomic_load_n(&w.scheduler.clock, __ATOMIC_ACQUIRE);
}
// Whether a follower's server has reached the last known clock of the leader's server: its next
// operation waits there.
inline bool is_at_leader_clock_limit(const Layout& w) noexcept {
  return leader_clock_limit(w) != kNoClock && clock_now(w) >= leader_clock_limit(w);
}

// Publishes the next request; the previous one was obeyed.  REQUIRES leader_clock_limit <=
// body.clock, or that the slot is held (DMT-W2).
void request_preemption(Layout& w, const PreemptBody& body) noexcept;
// The total number of obeyed requests.
inline std::uint64_t preempt_requests_obeyed(const Layout& w) noexcept {
  return w.scheduler.preempt_requests_obeyed.load(std::memory_order_acquire);
}

}  // namespace crane::dmt
