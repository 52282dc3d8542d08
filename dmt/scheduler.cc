// SPDX-License-Identifier: Apache-2.0
#include "dmt/scheduler.h"

#include <atomic>
#include <cstring>

#include "dmt/admission.h"
#include "dmt/base/assert.h"
#include "dmt/base/memory_fence.h"
#include "dmt/base/valgrind.h"
#include "dmt/hand_off.h"
#include "dmt/preempt_requests.h"
#include "dmt/run_queue.h"
#include "dmt/schedule_hash.h"
#include "dmt/sequence/output.h"
#include "dmt/sequence/ring.h"
#include "dmt/slices.h"

namespace crane::dmt {
namespace {
// Holds the turn while a thread without a slot passes it on.  With the old slot's number, a new
// thread in that slot could take the turn for its own (DMT-T1).
constexpr Slot kLeaver{0xfffe};
static_assert(value(kLeaver) >= kSlotsMax && value(kLeaver) != kHolderIdle);

std::byte* base(Layout& w) noexcept { return reinterpret_cast<std::byte*>(&w); }

bool sequence_empty(Layout& w) noexcept { return Ring(w.header.sequence, base(w)).empty(); }

bool serial(const Layout& w) noexcept { return w.header.configuration.mode == Mode::kSerial; }

bool by_arrival(const Layout& w) noexcept {
  return w.header.configuration.admission == Admission::kArrival;
}

// Sends the turns of one full record to the node.
void hand_out_turns(Layout& w) noexcept {
  const std::uint64_t first = w.scheduler.clock + 1 - kTurnsPerRecord;
  const OutputHeader header{OutputType::kTurns, {}, first, kTurnsPerRecord, w.scheduler.clock};
  constexpr std::size_t kBytes = kTurnsPerRecord * sizeof(TurnRecord);
  const std::span<std::byte> room = reserve_output(w, sizeof header + kBytes);
  std::memcpy(room.data(), &header, sizeof header);
  std::memcpy(room.data() + sizeof header, &w.turns[first % kTurnHistory], kBytes);
  commit_quietly(w, sizeof header + kBytes);
}

void remember_turn(Layout& w, std::uint16_t slot, Operation op, std::uint64_t result) noexcept {
  const std::uint64_t turn = w.scheduler.clock;
  TurnRecord& t = w.turns[turn % kTurnHistory];
  t.result = result;
  t.operation = op;
  t.slot = slot;
  t.process = w.slots[slot].process;
  TurnRecord& next = w.turns[(turn + 1) % kTurnHistory];
  next.object = next.caller = 0;
  if (w.header.configuration.trace != 0 && (turn + 1) % kTurnsPerRecord == 0) hand_out_turns(w);
}

// Advances the clock by one turn.  DMT-T1, DMT-T4.
void tick(Layout& w, Slot me, Operation op, std::uint64_t result) noexcept {
  SchedulerState& s = w.scheduler;
  CRANE_ASSERT(s.holder.load(std::memory_order_relaxed) == value(me));  // DMT-T1
  ++s.clock;
  s.last_slot = value(me);
  // A thread gives way at an arbitrary point of its computation, which differs between replicas.
  if (op != kOperationYield) ++w.slots[value(me)].operations;
  fold_turn(s, w.history, value(me), op, result);
  remember_turn(w, value(me), op, result);
  if (by_arrival(w)) return;
  CRANE_ASSERT(s.grant_left > 0);  // DMT-T4
  --s.grant_left;
  if (s.ends_grant) s.grant_left = 0;
  s.ends_grant = false;
  if (s.grant_left == s.grant_low_mark && s.leading.load(std::memory_order_relaxed) != 0 &&
      (sequence_empty(w) || w.header.configuration.stall_rule != StallRule::kOff)) {
    // With the stall rule, the sequence may contain only entries that grant nothing.
    s.grant_low.store(1, std::memory_order_relaxed);
    ring_doorbell(w);
  }
}

// Notifies the node of new output: at once if all runnable threads compute, otherwise after a few
// hand-offs.  Then the answers of one burst leave in one wake-up of the node, and their requests
// return together.
void flush_output(Layout& w) noexcept {
  SchedulerState& s = w.scheduler;
  if (s.output_pending == 0) return;
  const bool others_runnable = s.runnable > s.sliced_runnable && !s.ended;
  if (others_runnable && s.output_pending++ < kHandOffsPerDoorbell) return;
  s.output_pending = 0;
  ring_doorbell(w);
}

// Leaves the turn unowned: the node picks it up with the next entry.  Returns true if the caller
// has the turn again because an entry came meanwhile.
bool leave_turn_unowned(Layout& w, Slot me) noexcept {
  SchedulerState& s = w.scheduler;
  const bool wants_turns = s.run_queue.head != kNone && !s.ended;
  s.stalled.store(wants_turns ? 1 : 0, std::memory_order_relaxed);
  s.published_clock.store(s.clock, std::memory_order_relaxed);
  const bool notify_leader =
      s.leading.load(std::memory_order_relaxed) != 0 &&
      (wants_turns || s.at_soft_barrier.load(std::memory_order_relaxed) != 0 ||
       s.next_deadline.load(std::memory_order_relaxed) <
           s.node_timer.load(std::memory_order_relaxed));
  const std::uint16_t awaited = s.awaited;  // readable until the turn is unowned
  const bool may_admit = awaited == 0;
  s.holder.store(kHolderIdle, std::memory_order_seq_cst);
  if (notify_leader) ring_doorbell(w);
  // Dekker with admit_from_node: either this thread sees its entry, or it sees the unowned turn.
  if (!may_admit) {
    // The next entry is an ATTACH whose thread was not there: Dekker with reattach.
    if (w.slots[awaited].arrived.load(std::memory_order_seq_cst) == 0) return false;
  } else if (sequence_empty(w)) {
    return false;
  }
  std::uint32_t idle = kHolderIdle;
  if (!s.holder.compare_exchange_strong(idle, value(me), std::memory_order_seq_cst)) return false;
  s.stalled.store(0, std::memory_order_relaxed);
  return true;
}

// Gives up the turn of `me`: the head of the run queue gets it as soon as a grant allows.
void select_next(Layout& w, Slot me) noexcept {
  SchedulerState& s = w.scheduler;
  flush_output(w);
  if (me != kNodeSlot) perturb(w);  // perturbs the schedule, not consensus
  for (;;) {
    if (s.fenced.load(std::memory_order_relaxed) != 0) {
      if (me == kNodeSlot) return;  // it keeps the turn, because it must end the server
      stop_here(w);
    }
    if (by_arrival(w)) {
      while (admit_next(w)) {
      }
      s.grant_left = s.admitted.index == Index{0} ? 0 : 1;
    }
    // D4: drops the rest in O(1).  When the server has ended, processes that the kernel has not yet
    // ended take no part any more.
    if (s.run_queue.head == kNone || s.ended) s.grant_left = 0;
    if (s.grant_left > 0) choose_beside_slices(w);
    if (s.grant_left > 0) {
      s.quantum_left = next_quantum(w);
      pass_turn(w, s.run_queue.head);
      return;
    }
    if (admit_next(w)) continue;
    if (!leave_turn_unowned(w, me)) return;
  }
}

// Moves the head of the run queue behind the other threads.
void rotate_head(Layout& w) noexcept {
  Queue16& queue = w.scheduler.run_queue;
  const std::uint16_t slot = queue.head;
  remove(w, queue, slot);
  push_back(w, queue, slot);
}

void leave_operation(Layout& w, Slot me) noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);  // a probe sees the whole operation done
  w.slots[value(me)].in_operation.store(0, std::memory_order_relaxed);
}

// Records the leader's place from the request, so that the next stall there is found sooner.
void remember_site(SchedulerState& s) noexcept {
  const StallSite& site = s.preempt_request_site;
  for (std::uint32_t i = 0; i < s.stall_sites; ++i) {
    if (is_within(s.stall_site[i], site.low) && is_within(s.stall_site[i], site.high)) return;
  }
  if (s.stall_sites < kStallSitesMax) s.stall_site[s.stall_sites++] = site;
}

void take_out(Layout& w, std::uint16_t slot) noexcept {
  unlink(w, slot);
  SlotRecord& s = w.slots[slot];
  s.state = SlotState::kDetached;
  s.detachments.fetch_add(1, std::memory_order_relaxed);
  s.detached.store(1, std::memory_order_relaxed);
}

}  // namespace

void initialise_scheduler(Layout& w) noexcept {
  SchedulerState& s = w.scheduler;
  s.run_queue = {kNone, kNone};
  for (Queue16& q : w.wait_buckets) q = {kNone, kNone};
  // Slot 0 is the node's; the others are assigned first in, first out (D19).
  for (std::uint16_t i = 1; i < kSlotsMax; ++i) {
    w.slots[i].queue_next = i + 1u < kSlotsMax ? static_cast<std::uint16_t>(i + 1) : kNone;
    w.slots[i].queue_previous = kNone;
  }
  w.slots[0].state = SlotState::kDead;
  s.free_slots_head = 1;
  s.free_slots_tail = kSlotsMax - 1;
  s.slots_used = 1;
  initialise_timers(w);
  s.next_deadline.store(kNoDeadline);
  s.node_timer.store(kNoDeadline);
  s.leader_clock_limit.store(kNoClock);
  s.preempt_clock.store(kNoClock);
  s.quantum_left = w.header.configuration.quantum;
  s.holder.store(kHolderIdle, std::memory_order_seq_cst);
}

bool get_turn_or_leave(Layout& w, Slot me) noexcept {
  // Set before the check for a request: a probe that interrupts now leaves the request to this
  // code.
  w.slots[value(me)].in_operation.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (w.slots[value(me)].detached.load(std::memory_order_relaxed) != 0) return false;
  while (!has_turn(w, me) || w.scheduler.clock >= leader_clock_limit(w)) {
    if (has_preempt_request(w, me)) {
      yield_turn(w, me);
      if (w.slots[value(me)].detached.load(std::memory_order_relaxed) != 0) return false;
    } else if (is_past_preempt_request(w, me)) {
      fence_past_preempt_request(w);  // DMT-W1
    } else {
      await_turn(w, value(me), Until::kMayOperate);
    }
  }
  return true;
}

void put_turn(Layout& w, Slot me, Operation op, std::uint64_t result, bool yield) noexcept {
  tick(w, me, op, result);
  SchedulerState& s = w.scheduler;
  CRANE_ASSERT(s.run_queue.head == value(me));  // DMT-T2
  if (s.quantum_left > 0) --s.quantum_left;
  const bool quantum_over = yield || s.quantum_left == 0;
  if (quantum_over) s.quantum_left = next_quantum(w);
  const bool rotate = quantum_over && s.runnable > 1;
  if (rotate || s.grant_left == 0 || by_arrival(w)) {  // else the fast path
    if (rotate) rotate_head(w);
    select_next(w, me);
    if (serial(w)) await_turn(w, value(me), Until::kHasTurn);
  }
  leave_operation(w, me);
}

void yield_without_turn(Layout& w, Slot me, Operation op) noexcept {
  tick(w, me, op, 0);
  SchedulerState& s = w.scheduler;
  CRANE_ASSERT(s.run_queue.head == value(me));  // DMT-T2
  rotate_head(w);
  select_next(w, me);
}

WakeReason wait(Layout& w, Slot me, std::uint64_t object, std::int64_t deadline_ns,
                Operation op) noexcept {
  if (object != 0) {
    note_object(w, object);
    order_in_valgrind(object);
  }
  tick(w, me, op, object != 0 ? 1 : 0);
  SchedulerState& s = w.scheduler;
  SlotRecord& slot = w.slots[value(me)];
  CRANE_ASSERT(slot.state == SlotState::kRunnable);  // DMT-T3
  CRANE_ASSERT(s.run_queue.head == value(me));       // DMT-T2
  if (deadline_ns <= s.now_ns) {
    // A deadline in the past times out at once, but still lets the other threads run first (rule
    // 8).
    rotate_head(w);
    slot.wake_reason = WakeReason::kTimeout;
  } else {
    unlink(w, value(me));
    slot.state = SlotState::kWaiting;
    slot.wait_object = object;
    slot.wait_since_ns = s.now_ns;
    slot.wait_operation = op;
    slot.wait_caller = w.turns[s.clock % kTurnHistory].caller;
    if (object != 0) push_back(w, bucket(w, object), value(me));  // DMT-T5
    if (deadline_ns != kNoDeadline) arm_timer(w, value(me), deadline_ns);
  }
  select_next(w, me);
  await_turn(w, value(me), Until::kHasTurn);  // still the same operation
  if (object != 0) order_in_valgrind(object);
  return slot.wake_reason;
}

void detach(Layout& w, Slot me, Operation op) noexcept {
  tick(w, me, op, 0);
  SlotRecord& slot = w.slots[value(me)];
  CRANE_ASSERT(slot.state == SlotState::kRunnable);       // DMT-T3
  CRANE_ASSERT(w.scheduler.run_queue.head == value(me));  // DMT-T2
  take_out(w, value(me));
  select_next(w, me);
  leave_operation(w, me);
}

void reattach(Layout& w, Slot me) noexcept {
  SchedulerState& s = w.scheduler;
  SlotRecord& slot = w.slots[value(me)];
  slot.in_operation.store(1, std::memory_order_relaxed);
  // Dekker with leave_turn_unowned: either it sees this arrival, or this thread finds the unowned
  // turn.
  slot.arrived.store(1, std::memory_order_seq_cst);
  s.arrivals.fetch_add(1, std::memory_order_seq_cst);
  ring_doorbell(w);
  std::uint32_t idle = kHolderIdle;
  if (!sequence_empty(w) &&
      s.holder.compare_exchange_strong(idle, value(me), std::memory_order_seq_cst)) {
    s.stalled.store(0, std::memory_order_relaxed);
    select_next(w, me);
  }
  await_turn(w, value(me), Until::kHasTurn);
  slot.detached.store(0, std::memory_order_relaxed);
}

void yield_turn(Layout& w, Slot me) noexcept {
  SchedulerState& s = w.scheduler;
  CRANE_ASSERT(has_preempt_request(w, me));     // DMT-W1
  CRANE_ASSERT(s.run_queue.head == value(me));  // DMT-T2
  const bool leaves = s.preempt_request_leaves != 0;
  if (!leaves) remember_site(s);
  w.slots[value(me)].preempted.fetch_add(1, std::memory_order_relaxed);
  tick(w, me, kOperationYield, leaves ? 1 : 0);
  s.preempt_requests_obeyed.fetch_add(1, std::memory_order_release);
  if (leaves) {
    take_out(w, value(me));
    ring_doorbell(w);  // the node may raise the leader clock limit now
    return select_next(w, me);
  }
  rotate_head(w);
  // No other thread can run: as at quiescence, waiting entries are admitted.
  if (s.run_queue.head == value(me)) s.grant_left = 0;
  prefer_sliced_thread(w, value(me));
  ring_doorbell(w);  // the node may raise the leader clock limit now
  select_next(w, me);
  if (serial(w)) await_turn(w, value(me), Until::kHasTurn);
}

WakeReason wait_at_soft_barrier(Layout& w, Slot me, std::uint64_t object, std::int64_t deadline_ns,
                                Operation op) noexcept {
  w.slots[value(me)].at_soft_barrier = 1;
  w.scheduler.at_soft_barrier.fetch_add(1, std::memory_order_relaxed);
  const WakeReason why = wait(w, me, object, deadline_ns, op);
  w.slots[value(me)].at_soft_barrier = 0;
  w.scheduler.at_soft_barrier.fetch_sub(1, std::memory_order_relaxed);
  return why;
}

void leave(Layout& w, Slot me) noexcept {
  tick(w, me, kOperationLeave, 0);
  select_next(w, kLeaver);
}

bool admit_from_node(Layout& w) noexcept {
  SchedulerState& s = w.scheduler;
  std::uint32_t idle = kHolderIdle;
  // Dekker with leave_turn_unowned: the push before this call is only a release store.
  memory_fence();
  if (sequence_empty(w)) return false;
  if (!s.holder.compare_exchange_strong(idle, value(kNodeSlot), std::memory_order_seq_cst)) {
    return false;
  }
  s.stalled.store(0, std::memory_order_relaxed);
  select_next(w, kNodeSlot);
  return true;
}

bool take_unowned_turn(Layout& w) noexcept {
  std::uint32_t idle = kHolderIdle;
  return w.scheduler.holder.compare_exchange_strong(idle, value(kNodeSlot),
                                                    std::memory_order_seq_cst);
}

void release_turn(Layout& w) noexcept {
  CRANE_ASSERT(has_turn(w, kNodeSlot));  // DMT-L1
  select_next(w, kNodeSlot);
}

}  // namespace crane::dmt
