// SPDX-License-Identifier: Apache-2.0
#pragma once
// Against starvation at mutexes.  A thread that is woken by an unlock has to try again, and another
// thread may have been faster; in a deterministic schedule it may be faster for ever.  So a thread
// that failed kPatience times reserves the mutex: until it has it, the others' attempts fail.
//
// Departs from PARROT, whose round-robin queue has the same cycle; direct hand-off at every unlock
// would cost a thread switch per contended lock.
//
// Threads: everything REQUIRES the turn; the table is the process' own, so mutexes that processes
// share are not covered.

#include <cstdint>

#include "dmt/scheduler.h"
#include "runtime/preload/self/thread.h"

namespace crane {

inline constexpr int kPatience = 8;

bool is_reserved_for_another(std::uint64_t object) noexcept;
// `failures` counts the caller's attempts; at kPatience the object is reserved for it.
void note_failure(std::uint64_t object, int& failures) noexcept;
// The caller has the object, or gives up waiting.
void end_reservation(dmt::Layout& w, std::uint64_t object, bool gave_up) noexcept;
// How many waiters an unlock wakes: all of them while there is a reservation.
std::uint32_t waiters_to_wake(std::uint64_t object) noexcept;
// The child of fork has none of its parent's waiters.
void forget_reservations() noexcept;

}  // namespace crane
