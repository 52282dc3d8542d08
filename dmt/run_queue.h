// SPDX-License-Identifier: Apache-2.0
#pragma once
// Index-linked FIFO queues of slots inside the segment: the run queue and the wait buckets.  A slot
// is in at most one of them, so one pair of links per slot serves both (DMT-T3).
//
// Threads / Processes: REQUIRES the turn.

#include "dmt/base/assert.h"
#include "dmt/layout.h"

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

}  // namespace crane::dmt
