// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/role/grants.h"

#include <algorithm>

#include "dmt/base/assert.h"

namespace crane::replica {

Decision GrantPolicy::step(const Observation& seen) noexcept {
  if (!seen.stalled) stalled_since_ns_ = kNever;
  // GRANT-1.  Clients may send without a pause; a slice must not wait for the end of that.
  if (seen.slice_wanted && seen.applied > slice_behind_) {
    slice_behind_ = seen.proposed;
    return {Propose::kBubble, options_.bubble_min, kNever};
  }
  // GRANT-1.  The outstanding entries grant turns and carry time; their admission is an event.
  if (seen.proposed > seen.applied) return {};
  if (seen.stalled || (seen.grant_low && !options_.classic)) {
    const Decision decision = bubble(seen);
    if (decision.what != Propose::kNothing) return decision;
    Decision with_deadline = decision;
    if (seen.next_deadline_ns != kNever) {
      with_deadline.look_again_ns = std::min(decision.look_again_ns, seen.next_deadline_ns);
    }
    return with_deadline;
  }
  if (seen.at_soft_barrier) {
    last_time_ns_ = seen.virtual_now_ns;
    return {Propose::kTime, input_grant(), kNever};
  }
  if (seen.next_deadline_ns == kNever) return {};
  const std::int64_t due =
      std::max(seen.next_deadline_ns, last_time_ns_ + options_.granularity_ns);  // GRANT-3
  if (seen.virtual_now_ns < due) return {Propose::kNothing, 0, due};
  last_time_ns_ = seen.virtual_now_ns;
  return {Propose::kTime, input_grant(), kNever};
}

Decision GrantPolicy::bubble(const Observation& seen) noexcept {
  if (options_.classic) {
    // CRANE 4.2: the sequence stayed empty for W_timeout, then a bubble of N_clock.
    if (stalled_since_ns_ == kNever) stalled_since_ns_ = seen.virtual_now_ns;
    const std::int64_t due = stalled_since_ns_ + options_.classic_wait_ns;
    if (seen.virtual_now_ns < due) return {Propose::kNothing, 0, due};
    stalled_since_ns_ = kNever;
    return {Propose::kBubble, options_.classic_bubble, kNever};
  }
  const GrantTurns grant = bubble_;
  bubble_ = std::min(bubble_ * 2, options_.bubble_max);  // GRANT-2
  CRANE_ASSERT(grant >= options_.bubble_min && grant <= options_.bubble_max);
  return {Propose::kBubble, grant, kNever};
}

}  // namespace crane::replica
