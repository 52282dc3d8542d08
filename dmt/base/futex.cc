// SPDX-License-Identifier: Apache-2.0
#include "dmt/base/futex.h"

#include <linux/futex.h>

#include <ctime>

#include "dmt/base/raw.h"

namespace crane {
namespace {
long raw_futex(const void* word, int operation, std::uint32_t value,
               const timespec* timeout) noexcept {
  return raw_syscall(SYS_futex, word, operation, value, timeout);
}
}  // namespace

void futex_wait(const std::atomic<std::uint32_t>* word, std::uint32_t expected) noexcept {
  raw_futex(word, FUTEX_WAIT, expected, nullptr);
}

bool futex_wait_for(const std::atomic<std::uint32_t>* word, std::uint32_t expected,
                    std::int64_t timeout_ns) noexcept {
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  return raw_futex(word, FUTEX_WAIT, expected, &timeout) != -ETIMEDOUT;
}

void futex_wake(const std::atomic<std::uint32_t>* word, int count) noexcept {
  raw_futex(word, FUTEX_WAKE, static_cast<std::uint32_t>(count), nullptr);
}

}  // namespace crane
