// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/role/grant_proposer.h"

#include <algorithm>

namespace crane::replica {

Decision GrantProposer::step(const Now& now, const TurnsNeeded& wanted) noexcept {
  Observation seen;
  seen.applied = seen_applied_ = now.applied;
  seen.stalled = seen_stalled_ = wanted.stalled;
  seen.grant_low = seen_low_ = wanted.low;
  seen.slice_wanted = seen_slice_ = wanted.slice;
  seen.at_soft_barrier = wanted.at_soft_barrier && !wanted.stalled;
  seen.next_deadline_ns = wanted.next_deadline_ns;
  seen.proposed = now.proposed;
  seen.virtual_now_ns = now.virtual_ns;
  const Decision decision = policy_.step(seen);
  if (decision.what != Propose::kNothing) {
    due_ns_ = kNever;
  } else if (seen.proposed <= seen.applied) {
    due_ns_ = decision.look_again_ns;
  } else if (due_ns_ <= seen.virtual_now_ns) {
    due_ns_ = kNever;  // otherwise it stays armed, because its deadline is still pending
  }
  timer_ns_ = due_ns_ == kNever ? kNever : std::min(due_ns_, wanted.next_deadline_ns);
  return decision;
}

bool GrantProposer::has_news(Index applied, Index proposed,
                             const TurnsNeeded& wanted) const noexcept {
  if (applied != seen_applied_ || wanted.stalled != seen_stalled_) return true;
  if (wanted.low != seen_low_ || wanted.slice != seen_slice_) return true;
  if (proposed > seen_applied_) return false;
  return wanted.at_soft_barrier || wanted.next_deadline_ns < timer_ns_;
}

}  // namespace crane::replica
