// SPDX-License-Identifier: Apache-2.0
#pragma once
// System calls without libc.  They do not touch errno, are no cancellation points, bypass the
// functions that this library interposes, and may run in a signal handler or before libc's
// constructors.
//
// Threads: any.  Errors: a result in [-4095, -1] is -errno.

#include <sys/syscall.h>

#include <type_traits>

namespace crane {

template <typename T>
inline long raw_word(T value) noexcept {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<long>(value);
  } else if constexpr (std::is_null_pointer_v<T>) {
    return 0;
  } else {
    return static_cast<long>(value);
  }
}

inline long raw_syscall6(long number, long a, long b, long c, long d, long e, long f) noexcept {
#if defined(__x86_64__)
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#else
#error "raw system calls are written for x86-64 only"
#endif
}

template <typename A = long, typename B = long, typename C = long, typename D = long,
          typename E = long, typename F = long>
inline long raw_syscall(long number, A a = A{}, B b = B{}, C c = C{}, D d = D{}, E e = E{},
                        F f = F{}) noexcept {
  return raw_syscall6(number, raw_word(a), raw_word(b), raw_word(c), raw_word(d), raw_word(e),
                      raw_word(f));
}

}  // namespace crane
