// SPDX-License-Identifier: Apache-2.0
#pragma once
// A thread that sleeps for the turn sleeps on the word `parked` of its slot.

#include "dmt/base/futex.h"
#include "dmt/layout.h"

namespace crane::dmt {

// Wakes the slot's thread if it sleeps for the turn.
inline void wake_parked(SlotRecord& slot) noexcept {
  if (slot.parked.load(std::memory_order_seq_cst) != 1) return;
  slot.parked.store(0, std::memory_order_relaxed);
  futex_wake(&slot.parked, 1);
}

}  // namespace crane::dmt
