// SPDX-License-Identifier: Apache-2.0
#pragma once
// Index-linked FIFO queues of slots in the segment: the run queue and the wait buckets.  A slot is
// in at most one queue, so one pair of links per slot suffices (DMT-T3).  Also the length of a
// quantum.
//
// Threads / Processes: REQUIRES the turn.

#include "dmt/base/assert.h"
#include "dmt/layout.h"
#include "dmt/tuning.h"

namespace crane::dmt {

inline void push_back(Layout& w, Queue16& queue, std::uint16_t slot) noexcept {
  SlotRecord& s = w.slots[slot];
  s.queue_next = kNone;
  s.queue_previous = queue.tail;
  if (queue.tail != kNone) {
    w.slots[queue.tail].queue_next = slot;
  } else {
    queue.head = slot;
  }
  queue.tail = slot;
}

inline void remove(Layout& w, Queue16& queue, std::uint16_t slot) noexcept {
  SlotRecord& s = w.slots[slot];
  if (s.queue_previous != kNone) {
    w.slots[s.queue_previous].queue_next = s.queue_next;
  } else {
    CRANE_ASSERT(queue.head == slot);  // DMT-T3
    queue.head = s.queue_next;
  }
  if (s.queue_next != kNone) {
    w.slots[s.queue_next].queue_previous = s.queue_previous;
  } else {
    CRANE_ASSERT(queue.tail == slot);  // DMT-T3
    queue.tail = s.queue_previous;
  }
  s.queue_next = s.queue_previous = kNone;
}

inline void move_to_front(Layout& w, Queue16& queue, std::uint16_t slot) noexcept {
  if (queue.head == slot) return;
  remove(w, queue, slot);
  w.slots[slot].queue_next = queue.head;
  w.slots[queue.head].queue_previous = slot;
  queue.head = slot;
}

// The number of turns of the next head of the run queue.  Quanta differ in length, by the clock.
// Otherwise a thread in a loop of calls would be interrupted at the same calls for ever, and there
// the condition that another thread waits for may never hold (rule 23).
inline std::uint32_t next_quantum(const Layout& w) noexcept {
  const std::uint32_t quantum = w.header.configuration.quantum;
  const std::uint64_t mixed = w.scheduler.clock * 0x9E3779B97F4A7C15;
  return quantum + static_cast<std::uint32_t>((mixed >> 40) % (quantum / kQuantumJitter + 1));
}

}  // namespace crane::dmt
