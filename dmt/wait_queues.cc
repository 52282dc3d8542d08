// SPDX-License-Identifier: Apache-2.0
#include "dmt/wait_queues.h"

#include "dmt/base/valgrind.h"
#include "dmt/run_queue.h"
#include "dmt/slices.h"
#include "dmt/timers.h"

namespace crane::dmt {

Queue16& bucket(Layout& w, std::uint64_t object) noexcept {
  const std::uint64_t mixed = object * 0x9E3779B97F4A7C15;
  return w.wait_buckets[(mixed >> 40) & (kWaitBuckets - 1)];
}

void unlink(Layout& w, std::uint16_t slot) noexcept {
  SlotRecord& s = w.slots[slot];
  if (s.state == SlotState::kRunnable) {
    remove(w, w.scheduler.run_queue, slot);
    --w.scheduler.runnable;
    forget_slice(w, slot);
  } else if (s.state == SlotState::kWaiting) {
    if (s.wait_object != 0) remove(w, bucket(w, s.wait_object), slot);
    disarm_timer(w, slot);
  }
}

void make_runnable(Layout& w, std::uint16_t slot) noexcept {
  w.slots[slot].state = SlotState::kRunnable;
  push_back(w, w.scheduler.run_queue, slot);
  ++w.scheduler.runnable;
}

namespace {

// Calls `act` for up to `count` waiters of `object` that `wanted` accepts, oldest first.
template <typename Wanted, typename Act>
std::uint32_t each_waiter(Layout& w, std::uint64_t object, std::uint32_t count, Wanted wanted,
                          Act act) noexcept {
  std::uint32_t found = 0;
  // A thread moved within its bucket goes behind the threads that are in it now; the loop ends
  // before it.
  const std::uint16_t last = bucket(w, object).tail;
  for (std::uint16_t slot = bucket(w, object).head; slot != kNone && found < count;) {
    const std::uint16_t next = slot == last ? kNone : w.slots[slot].queue_next;
    if (w.slots[slot].wait_object == object && wanted(w.slots[slot])) {
      act(slot);
      ++found;
    }
    slot = next;
  }
  return found;
}

}  // namespace

std::uint32_t signal(Layout& w, std::uint64_t object, std::uint32_t count) noexcept {
  note_object(w, object);
  order_in_valgrind(object);
  return each_waiter(
      w, object, count, [](const SlotRecord&) { return true; },
      [&w](std::uint16_t slot) { wake(w, Slot{slot}, WakeReason::kSignalled); });
}

std::uint32_t signal_bits(Layout& w, std::uint64_t object, std::uint32_t count,
                          std::uint32_t bits) noexcept {
  order_in_valgrind(object);
  return each_waiter(
      w, object, count, [bits](const SlotRecord& s) { return (s.wait_bits & bits) != 0; },
      [&w](std::uint16_t slot) { wake(w, Slot{slot}, WakeReason::kSignalled); });
}

std::uint32_t requeue(Layout& w, std::uint64_t from, std::uint64_t to,
                      std::uint32_t count) noexcept {
  if (from == to) return 0;
  return each_waiter(
      w, from, count, [](const SlotRecord&) { return true; },
      [&w, from, to](std::uint16_t slot) {
        remove(w, bucket(w, from), slot);
        w.slots[slot].wait_object = to;
        push_back(w, bucket(w, to), slot);
      });
}

bool wake(Layout& w, Slot slot, WakeReason reason) noexcept {
  SlotRecord& s = w.slots[value(slot)];
  if (s.state != SlotState::kWaiting) return false;
  unlink(w, value(slot));
  s.wake_reason = reason;
  make_runnable(w, value(slot));
  return true;
}

std::uint64_t new_object(Layout& w, Slot me) noexcept {
  (void)me;
  // Creations happen at turns, so one counter gives the same names on every replica (D2).
  return ++w.scheduler.object_number;
}

void release_soft_barriers(Layout& w) noexcept {
  const SchedulerState& s = w.scheduler;
  if (s.at_soft_barrier.load(std::memory_order_relaxed) == 0 || s.run_queue.head != kNone) return;
  for (std::uint16_t i = 1; i < s.slots_used; ++i) {
    if (w.slots[i].at_soft_barrier != 0) wake(w, Slot{i}, WakeReason::kTimeout);
  }
}

}  // namespace crane::dmt
