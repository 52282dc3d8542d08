// SPDX-License-Identifier: Apache-2.0
#pragma once
// Robust mutexes of a thread that ends are marked at its turn, not when the kernel ends the thread.

#include <cstdint>

namespace crane {

// Marks the robust mutexes that this thread holds as "owner died" at this turn (D18).
void release_robust_mutexes(std::uint32_t thread_id) noexcept;
// Does so for all threads of this process before it ends. REQUIRES the turn.
void release_robust_mutexes_of_process() noexcept;
// Called before exec, at which the kernel releases them: the waiters try again at their next turn.
void wake_waiters_of_robust_mutexes() noexcept;

}  // namespace crane
