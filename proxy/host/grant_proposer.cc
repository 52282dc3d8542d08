// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/grant_proposer.h"

#include <algorithm>

namespace crane::node {

bool GrantProposer::is_idle() const noexcept {
  return w_.scheduler.holder.load(std::memory_order_acquire) == dmt::kHolderIdle;
}

bool GrantProposer::is_stalled() const noexcept {
  return w_.scheduler.stalled.load(std::memory_order_relaxed) != 0 && is_idle();
}

void GrantProposer::step(const Now& now, const Propose& propose) {
  dmt::SchedulerState& s = w_.scheduler;
  proxy::Observation seen;
  seen.applied = seen_applied_ = now.applied;
  seen.stalled = seen_stalled_ = is_stalled();
  seen.grant_low = seen_low_ = s.grant_low.load(std::memory_order_relaxed) != 0;
  seen.lined_up = s.lined_up.load(std::memory_order_relaxed) != 0 && !seen.stalled && is_idle();
  seen.next_deadline_ns = s.next_deadline.load(std::memory_order_relaxed);
  seen.proposed = now.proposed;
  seen.virtual_now_ns = now.virtual_ns;
  const proxy::Decision decision = policy_.step(seen);
  if (decision.what != proxy::Propose::kNothing) {
    const bool time = decision.what == proxy::Propose::kTime;
    propose(time ? EntryType::kTime : EntryType::kBubble, decision.grant);
    due_ns_ = proxy::kNever;
  } else if (seen.proposed <= seen.applied) {
    due_ns_ = decision.look_again_ns;
  } else if (due_ns_ <= seen.virtual_now_ns) {
    due_ns_ = proxy::kNever;  // else it stays armed: the deadline it is for is still there
  }
  // The timer may be late for the deadline on purpose (GRANT-3): the server need not ring for it
  // again.
  const std::int64_t told =
      due_ns_ == proxy::kNever ? due_ns_ : std::min(due_ns_, seen.next_deadline_ns);
  s.node_timer.store(told, std::memory_order_relaxed);
}

bool GrantProposer::has_news(Index applied, Index proposed) const noexcept {
  const dmt::SchedulerState& s = w_.scheduler;
  if (applied != seen_applied_ || is_stalled() != seen_stalled_) return true;
  const bool lined_up = s.lined_up.load(std::memory_order_relaxed) != 0 && is_idle();
  if (lined_up && proposed <= seen_applied_) return true;
  if ((s.grant_low.load(std::memory_order_relaxed) != 0) != seen_low_) return true;
  return proposed <= seen_applied_ && s.next_deadline.load(std::memory_order_relaxed) <
                                          s.node_timer.load(std::memory_order_relaxed);
}

}  // namespace crane::node
