// SPDX-License-Identifier: Apache-2.0
#include "dmt/base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace crane {
namespace {
// syscall() is interposed too; the real one is what libc's own name resolves to inside us.
long raw_futex(const void* word, int operation, std::uint32_t value,
               const timespec* timeout) noexcept {
  long result;
#if defined(__x86_64__)
  register long r10 asm("r10") = reinterpret_cast<long>(timeout);
  asm volatile("syscall"
               : "=a"(result)
               : "a"(SYS_futex), "D"(word), "S"(operation), "d"(value), "r"(r10)
               : "rcx", "r11", "memory");
#else
  const int saved = errno;
  result = ::syscall(SYS_futex, word, operation, value, timeout, nullptr, 0);
  if (result < 0) result = -errno;
  errno = saved;
#endif
  return result;
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
