// SPDX-License-Identifier: Apache-2.0
#pragma once
// Wait queues and wake-ups: which slot waits for which object, and which slots can run (PARROT;
// DESIGN D9, D19).
//
// Threads / Processes: everything REQUIRES the turn.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// The kind of an operation, for the schedule hash.  The runtime defines the values; they are the
// same everywhere.
using Operation = std::uint32_t;

// Makes up to `count` waiters of `object` runnable, oldest first; returns how many.
std::uint32_t signal(Layout& w, std::uint64_t object, std::uint32_t count) noexcept;
inline constexpr std::uint32_t kAll = UINT32_MAX;

// signal(), but only for waiters whose SlotRecord::wait_bits share a bit with `bits`
// (FUTEX_WAKE_BITSET).
std::uint32_t signal_bits(Layout& w, std::uint64_t object, std::uint32_t count,
                          std::uint32_t bits) noexcept;

// Moves up to `count` waiters of `from`, oldest first, behind the waiters of `to`; returns how
// many.
std::uint32_t requeue(Layout& w, std::uint64_t from, std::uint64_t to,
                      std::uint32_t count) noexcept;

// Makes a waiting slot runnable for any object; has no effect on a slot that does not wait.
bool wake(Layout& w, Slot slot, WakeReason reason) noexcept;

// Ends the waits at soft barriers if no thread is runnable.  Admission calls it at a TIME entry.
void release_soft_barriers(Layout& w) noexcept;

// Records the object and the caller of the operation that `me` ends next (TurnRecord).
inline void note_object(Layout& w, std::uint64_t object) noexcept {
  w.turns[(w.scheduler.clock + 1) % kTurnHistory].object = object;
}
inline void note_caller(Layout& w, std::uint64_t address) noexcept {
  w.turns[(w.scheduler.clock + 1) % kTurnHistory].caller = address;
}

// Returns an agreed 64-bit name, never 0, for an object that `me` creates now (D2).
std::uint64_t new_object(Layout& w, Slot me) noexcept;

// --- for the scheduler ----------------------------------------------------------------------

// The wait bucket of an object.
Queue16& bucket(Layout& w, std::uint64_t object) noexcept;
// Removes the slot from the run queue, or from its wait.
void unlink(Layout& w, std::uint16_t slot) noexcept;
// Appends the slot to the run queue.
void make_runnable(Layout& w, std::uint16_t slot) noexcept;

}  // namespace crane::dmt
