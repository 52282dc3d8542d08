// SPDX-License-Identifier: Apache-2.0
#pragma once
// The virtual time that a thread reads (DESIGN D6, D17, rule 8): the replica's clock at the
// thread's last turn plus 1 ns per read since. Every kClockReadsPerTurn-th read is a turn, so a
// loop that waits for time to pass reaches the log entries that carry time.
//
// Threads: any with a slot; virtual_now() must not be called within a turn (use Turn::now()).

#include <cstdint>

#include "dmt/scheduler.h"
#include "runtime/preload/ground/types.h"

namespace crane {

inline constexpr std::int64_t kNsPerSecond = 1'000'000'000;

// Reads the virtual monotonic clock.
std::int64_t virtual_now() noexcept;
// Reads the virtual CLOCK_REALTIME: the monotonic clock and the agreed offset.
std::int64_t virtual_wall_now() noexcept;

inline std::int64_t saturating_add(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? (b > 0 ? INT64_MAX : INT64_MIN) : sum;
}

inline bool is_valid(const struct timespec& t) noexcept {
  return t.tv_nsec >= 0 && t.tv_nsec < kNsPerSecond;
}
// Valid for the kernel's calls; libc's own calls accept negative seconds as a time long past.
inline bool is_positive(const struct timespec& t) noexcept { return is_valid(t) && t.tv_sec >= 0; }
inline std::int64_t to_ns(const struct timespec& t) noexcept {
  std::int64_t ns = 0;
  if (__builtin_mul_overflow(static_cast<std::int64_t>(t.tv_sec), kNsPerSecond, &ns)) {
    return t.tv_sec > 0 ? INT64_MAX : INT64_MIN;
  }
  return saturating_add(ns, t.tv_nsec);
}
// The nanoseconds are never negative, also for a time before 1970.
inline struct timespec to_timespec(std::int64_t ns) noexcept {
  struct timespec t;
  t.tv_sec = ns / kNsPerSecond;
  t.tv_nsec = ns % kNsPerSecond;
  if (t.tv_nsec < 0) {
    --t.tv_sec;
    t.tv_nsec += kNsPerSecond;
  }
  return t;
}
inline struct timeval to_timeval(std::int64_t ns) noexcept {
  const struct timespec t = to_timespec(ns);
  return {t.tv_sec, t.tv_nsec / 1000};
}

// REQUIRES the turn: returns the virtual monotonic deadline `ns` from now; never kNoDeadline.
inline std::int64_t deadline_after(const dmt::Layout& w, std::int64_t ns) noexcept {
  const std::int64_t deadline = saturating_add(w.scheduler.now_ns, ns);
  return deadline == dmt::kNoDeadline ? dmt::kNoDeadline - 1 : deadline;
}

// REQUIRES the turn: converts an absolute time of `clock` to a virtual monotonic deadline.
std::int64_t deadline_at(const dmt::Layout& w, clockid_t clock, const struct timespec& t) noexcept;

// True for the clocks that deadlines may be given in.
inline bool is_deadline_clock(clockid_t clock) noexcept {
  return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ||
         clock == CLOCK_TAI || clock == CLOCK_REALTIME_ALARM || clock == CLOCK_BOOTTIME_ALARM;
}

// The only clocks that libc's own waits accept.
inline bool is_futex_clock(clockid_t clock) noexcept {
  return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

// Clocks that can be read but not used for waits or timers.
inline bool is_read_only_clock(clockid_t clock) noexcept {
  return clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_REALTIME_COARSE ||
         clock == CLOCK_MONOTONIC_COARSE;
}

}  // namespace crane
