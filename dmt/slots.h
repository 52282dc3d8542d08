// SPDX-License-Identifier: Apache-2.0
#pragma once
// Creates and releases the slots of threads.
//
// Threads / Processes: everything REQUIRES the turn.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// Takes a free slot for a thread of `process` and appends it to the run queue.  Returns kNoSlot if
// the table is full (the caller returns EAGAIN, on every replica).
Slot create_slot(Layout& w, std::uint16_t process) noexcept;

// The slot's thread ends: removes the slot from its queues and frees it.  Does not pass the turn:
// see leave().
void release_slot(Layout& w, Slot slot) noexcept;

// The slot's process has ended for the schedule, but its thread may still exist.  Removes the slot
// from its queues; the number is reused only after release_slot (when the process is reaped).
void kill_slot(Layout& w, Slot slot) noexcept;

// Whether ATTACH(slot, number) can be admitted: its thread has arrived, or no thread needs it.
bool may_attach(const Layout& w, std::uint32_t slot, std::uint32_t number) noexcept;
// The effect of ATTACH.  Called by admission only.
void attach(Layout& w, std::uint32_t slot, std::uint32_t number) noexcept;
}  // namespace crane::dmt
