// SPDX-License-Identifier: Apache-2.0
#include "dmt/preempt_requests.h"

#include "dmt/base/assert.h"
#include "dmt/base/log.h"
#include "dmt/parking.h"

namespace crane::dmt {

void wake_holder(Layout& w) noexcept {
  const std::uint32_t holder = w.scheduler.holder.load(std::memory_order_seq_cst);
  if (holder != value(kNodeSlot) && holder < kSlotsMax) wake_parked(w.slots[holder]);
}

bool has_preempt_request(const Layout& w, Slot me) noexcept {
  const SchedulerState& s = w.scheduler;
  return has_turn(w, me) && s.preempt_clock.load(std::memory_order_seq_cst) == s.clock &&
         s.preempt_slot.load(std::memory_order_relaxed) == value(me);
}

void fence_past_preempt_request(Layout& w) noexcept {
  const SchedulerState& s = w.scheduler;
  {
    Message() << "the group preempts slot " << s.preempt_slot.load(std::memory_order_relaxed)
              << " at clock " << s.preempt_clock.load(std::memory_order_relaxed)
              << "; on this replica slot " << s.holder.load(std::memory_order_relaxed)
              << " has the turn at clock " << s.clock << ", and operations wait at clock "
              << leader_clock_limit(w);
  }
  fence(w,
        "the group preempts a thread that does not have the turn on this replica: "
        "the schedules differ");
}

bool is_past_preempt_request(const Layout& w, Slot me) noexcept {
  const SchedulerState& s = w.scheduler;
  if (!has_turn(w, me)) return false;
  // Only the turn holder obeys, and the node sends the next request after the last one was obeyed.
  const std::uint64_t requests_sent = s.preempt_requests_sent.load(std::memory_order_seq_cst);
  if (requests_sent <= s.preempt_requests_obeyed.load(std::memory_order_relaxed)) return false;
  return s.preempt_clock.load(std::memory_order_seq_cst) <= s.clock && !has_preempt_request(w, me);
}

void set_leader_clock_limit(Layout& w, std::uint64_t clock) noexcept {
  w.scheduler.leader_clock_limit.store(clock, std::memory_order_seq_cst);
  wake_holder(w);
}

void request_preemption(Layout& w, const PreemptBody& body) noexcept {
  SchedulerState& s = w.scheduler;
  CRANE_ASSERT(leader_clock_limit(w) <= body.clock ||
               s.held_thread.load() == HeldThread::kHeld);  // DMT-W2
  s.preempt_request_site = {body.low, body.high};
  s.preempt_request_leaves = body.leaves;
  s.preempt_slot.store(body.slot, std::memory_order_relaxed);
  s.preempt_clock.store(body.clock, std::memory_order_seq_cst);
  s.preempt_requests_sent.fetch_add(1, std::memory_order_seq_cst);
  wake_holder(w);
}

}  // namespace crane::dmt
