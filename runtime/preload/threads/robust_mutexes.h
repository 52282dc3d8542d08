// SPDX-License-Identifier: Apache-2.0
#pragma once
// Robust mutexes of a thread that ends: they get their mark at its turn, not when the kernel ends
// it.

#include <cstdint>

namespace crane {

// The robust mutexes that this thread holds get their "owner died" mark at this turn (D18).
void release_robust_mutexes(std::uint32_t thread_id) noexcept;
// All threads of this process, before it ends.  REQUIRES the turn.
void release_robust_mutexes_of_process() noexcept;
// Before exec, at which the kernel releases them: their waiters look again at their next turn.
void wake_waiters_of_robust_mutexes() noexcept;

}  // namespace crane
