// SPDX-License-Identifier: Apache-2.0
#pragma once
// The slots of threads: where one is taken, and what is cleaned up when it is free again.
//
// Threads / Processes: everything REQUIRES the turn.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// Takes a free slot for a thread of `process` and puts it at the tail of the run queue.  kNoSlot
// when the table is full (the caller answers EAGAIN, the same on every replica).
Slot create_slot(Layout& w, std::uint16_t process) noexcept;

// The slot's thread ends: it leaves the queues and the slot is free for reuse.  Does not pass on
// the turn: see leave().
void release_slot(Layout& w, Slot slot) noexcept;

// The slot's process has ended for the schedule while its thread may still exist: it leaves the
// queues, and the number is not reused before release_slot (at the reaping of the process).
void kill_slot(Layout& w, Slot slot) noexcept;

// ATTACH(slot, number) can be admitted: its thread is here, or it concerns no thread any more.
bool may_attach(const Layout& w, std::uint32_t slot, std::uint32_t number) noexcept;
// The effect of ATTACH.  Called by admission only.
void attach(Layout& w, std::uint32_t slot, std::uint32_t number) noexcept;
}  // namespace crane::dmt
