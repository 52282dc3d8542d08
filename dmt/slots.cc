// SPDX-License-Identifier: Apache-2.0
#include "dmt/slots.h"

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/node_link.h"
#include "dmt/signals.h"
#include "dmt/wait_queues.h"
#include "dmt/watches.h"

namespace crane::dmt {

static constinit Bound slots_bound{kSlotsMax - 1, "threads of all processes",
                                   "pthread_create and fork fail (EAGAIN)"};

Slot create_slot(Layout& w, std::uint16_t process) noexcept {
  SchedulerState& s = w.scheduler;
  const std::uint16_t slot = s.free_slots_head;
  if (slot == kNone) {
    slots_bound.count_refusal();
    return kNoSlot;
  }
  SlotRecord& r = w.slots[slot];
  CRANE_ASSERT(r.state == SlotState::kFree);
  s.free_slots_head = r.queue_next;
  if (s.free_slots_head == kNone) s.free_slots_tail = kNone;
  if (slot >= s.slots_used) s.slots_used = slot + 1u;
  r.process = process;
  ++r.generation;
  r.thread_id = 0;
  r.wait_object = 0;
  r.pending_signals = 0;
  r.blocked_signals = 0;
  w.scheduling[slot] = {};
  r.operations = 0;
  r.cpu_ns = 0;
  // The slot's new thread has not started (DMT-R2); a thread killed in its sleep leaves a 1.
  r.parked.store(0, std::memory_order_relaxed);
  r.in_operation.store(0, std::memory_order_relaxed);
  r.preempted.store(0, std::memory_order_relaxed);
  r.detached.store(0, std::memory_order_relaxed);
  r.at_soft_barrier = 0;
  r.arrived.store(0, std::memory_order_relaxed);
  r.exit_object = new_object(w, Slot{slot});
  make_runnable(w, slot);
  ++w.processes[process].slots;
  return Slot{slot};
}

// The thread ends while it waits at a soft barrier, so it cannot report its departure itself.
static void leave_soft_barrier(Layout& w, SlotRecord& r) noexcept {
  if (r.at_soft_barrier == 0) return;
  r.at_soft_barrier = 0;
  w.scheduler.at_soft_barrier.fetch_sub(1, std::memory_order_relaxed);
}

void release_slot(Layout& w, Slot slot) noexcept {
  SlotRecord& r = w.slots[value(slot)];
  CRANE_ASSERT(r.state != SlotState::kFree);
  unlink(w, value(slot));
  leave_soft_barrier(w, r);
  forget_signals_of_slot(w, value(slot));
  if (r.state != SlotState::kDead) --w.processes[r.process].slots;
  r.state = SlotState::kFree;
  r.queue_next = kNone;
  SchedulerState& s = w.scheduler;
  if (s.free_slots_tail != kNone) {
    w.slots[s.free_slots_tail].queue_next = value(slot);
  } else {
    s.free_slots_head = value(slot);
  }
  s.free_slots_tail = value(slot);
}

void kill_slot(Layout& w, Slot slot) noexcept {
  unlink(w, value(slot));
  leave_soft_barrier(w, w.slots[value(slot)]);
  // Its thread will not return from poll() to drop its watches.  Watches exist only in a wait
  // without an object, so most ends need no search.
  if (w.slots[value(slot)].wait_object == 0) drop_watches_of(w, slot);
  w.slots[value(slot)].state = SlotState::kDead;
}

static bool is_detached(const Layout& w, std::uint32_t slot, std::uint32_t number) noexcept {
  return slot < kSlotsMax && w.slots[slot].state == SlotState::kDetached &&
         w.slots[slot].detachments.load(std::memory_order_relaxed) == number;
}

bool may_attach(const Layout& w, std::uint32_t slot, std::uint32_t number) noexcept {
  return !is_detached(w, slot, number) ||
         w.slots[slot].arrived.load(std::memory_order_seq_cst) != 0;
}

void attach(Layout& w, std::uint32_t slot, std::uint32_t number) noexcept {
  if (!is_detached(w, slot, number)) return;  // proposed twice, or its process has ended
  CRANE_ASSERT(w.slots[slot].arrived.load(std::memory_order_relaxed) == 1);
  w.slots[slot].arrived.store(0, std::memory_order_relaxed);
  make_runnable(w, static_cast<std::uint16_t>(slot));
}

}  // namespace crane::dmt
