// SPDX-License-Identifier: Apache-2.0
#pragma once
// The machine's clocks in nanoseconds.  A server never observes them; it observes virtual time
// (dmt/admission.h).
//
// Threads: any.

#include <cstdint>
#include <ctime>

namespace crane {

inline std::int64_t clock_ns(clockid_t clock) noexcept {
  timespec t{};
  ::clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

inline std::int64_t monotonic_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }
inline std::int64_t realtime_ns() noexcept { return clock_ns(CLOCK_REALTIME); }
inline std::int64_t unix_ms() noexcept { return realtime_ns() / 1'000'000; }

}  // namespace crane
