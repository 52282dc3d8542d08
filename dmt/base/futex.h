// SPDX-License-Identifier: Apache-2.0
#pragma once
// Process-shared futex wait and wake.  They use the raw system call, because the library is loaded
// into programs whose libc functions it interposes.
//
// Threads / Processes: any that map the word.

#include <atomic>
#include <cstdint>

namespace crane {

// Sleeps while *word == expected.  Returns on a wake-up, a signal, a changed word or a spurious
// wake-up, so the caller checks again.  Never touches errno.
void futex_wait(const std::atomic<std::uint32_t>* word, std::uint32_t expected) noexcept;

// As futex_wait, but for at most `timeout_ns`.  False when the time passed without a wake-up.
bool futex_wait_for(const std::atomic<std::uint32_t>* word, std::uint32_t expected,
                    std::int64_t timeout_ns) noexcept;

void futex_wake(const std::atomic<std::uint32_t>* word, int count) noexcept;

}  // namespace crane
