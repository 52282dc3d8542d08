// SPDX-License-Identifier: Apache-2.0
#pragma once
// Prevents starvation at mutexes. A thread that an unlock wakes must try again, and another thread
// may be faster; in a deterministic schedule this may repeat forever. So a thread that failed
// kPatience times reserves the mutex: until it has the mutex, the attempts of other threads fail.
//
// Departs from PARROT, whose round-robin queue has the same cycle. Direct hand-off at every unlock
// would cost a thread switch per contended lock.
//
// Threads: everything REQUIRES the turn. The table belongs to the process, so mutexes that
// processes share are not covered.

#include <cstdint>

#include "dmt/scheduler.h"
#include "runtime/preload/self/thread.h"

namespace crane {

inline constexpr int kPatience = 8;

bool is_reserved_for_another(std::uint64_t object) noexcept;
// Counts a failed attempt in `failures`; at kPatience, reserves the object for the caller.
void note_failure(std::uint64_t object, int& failures) noexcept;
// Called when the caller has the object or gives up waiting.
void end_reservation(dmt::Layout& w, std::uint64_t object, bool gave_up) noexcept;
// The number of waiters that an unlock wakes: all of them while there is a reservation.
std::uint32_t waiters_to_wake(std::uint64_t object) noexcept;
// Called in the child of fork, which has none of its parent's waiters.
void forget_reservations() noexcept;

}  // namespace crane
