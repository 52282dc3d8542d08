// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which slot waits for which object, and which can run (PARROT's wait queues; DESIGN D9, D19).
//
// Threads / Processes: everything REQUIRES the turn.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// What an operation was, for the schedule hash; values are the runtime's and the same everywhere.
using Operation = std::uint32_t;

// Makes up to `count` waiters of `object` runnable, oldest first; returns how many.
std::uint32_t signal(Layout& w, std::uint64_t object, std::uint32_t count) noexcept;
inline constexpr std::uint32_t kAll = UINT32_MAX;

// The same for those of them whose SlotRecord::wait_bits share one with `bits` (FUTEX_WAKE_BITSET).
std::uint32_t signal_bits(Layout& w, std::uint64_t object, std::uint32_t count,
                          std::uint32_t bits) noexcept;

// Up to `count` waiters of `from`, oldest first, wait for `to` from now on, behind its own; returns
// how many.
std::uint32_t requeue(Layout& w, std::uint64_t from, std::uint64_t to,
                      std::uint32_t count) noexcept;

// Makes a waiting slot runnable whatever it waits for; no effect on one that does not wait.
bool wake(Layout& w, Slot slot, WakeReason reason) noexcept;

// Ends the waits at soft barriers when no thread is runnable.  Called by admission at a TIME entry.
void release_soft_barriers(Layout& w) noexcept;

// What the operation that `me` will end next is about, and who called it (TurnRecord).
inline void note_object(Layout& w, std::uint64_t object) noexcept {
  w.turns[(w.scheduler.clock + 1) % kTurnHistory].object = object;
}
inline void note_caller(Layout& w, std::uint64_t address) noexcept {
  w.turns[(w.scheduler.clock + 1) % kTurnHistory].caller = address;
}

// An agreed 64-bit name for something that `me` creates now (D2): never 0.
std::uint64_t new_object(Layout& w, Slot me) noexcept;

// --- for the scheduler
// ----------------------------------------------------------------------------

// The wait bucket of an object.
Queue16& bucket(Layout& w, std::uint64_t object) noexcept;
// Takes the slot out of the run queue, or off what it waits for.
void unlink(Layout& w, std::uint16_t slot) noexcept;
// Puts it at the tail of the run queue.
void make_runnable(Layout& w, std::uint16_t slot) noexcept;

}  // namespace crane::dmt
