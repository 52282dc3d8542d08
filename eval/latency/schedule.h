// SPDX-License-Identifier: Apache-2.0
// The times of an open loop's requests: fixed before the first one, whatever the server does.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace latency {

using Nanoseconds = std::int64_t;
inline constexpr double kSecond = 1e9;

// INVARIANT PACE-1  The time of request `i` depends on rate and begin alone: no answer moves it.
class Schedule {
 public:
  Schedule(double per_second, Nanoseconds begin, Nanoseconds end)
      : per_second_(per_second),
        begin_(begin),
        count_(static_cast<std::uint64_t>(
            std::llround(static_cast<double>(end - begin) * per_second / kSecond))) {}

  std::uint64_t count() const { return count_; }
  // Computed from the number, so that rounding errors do not accumulate.
  Nanoseconds time_of(std::uint64_t i) const {
    return begin_ + std::llround(static_cast<double>(i) * kSecond / per_second_);
  }

 private:
  double per_second_;
  Nanoseconds begin_;
  std::uint64_t count_;
};

// How much later than possible a request was sent: the delay that is due neither to its schedule
// nor to a busy connection, but to this program.
inline Nanoseconds lateness(Nanoseconds intended, Nanoseconds free_since, Nanoseconds sent) {
  return std::max<Nanoseconds>(0, sent - std::max(intended, free_since));
}

// Counts of requests in the measured window.
struct Counts {
  std::uint64_t due = 0;               // by the schedule
  std::uint64_t answered = 0;          // at any time
  std::uint64_t answered_in_time = 0;  // before the window ended
  std::uint64_t late = 0;              // sent late, by lateness()
};

// The rate was held if at most 1 % of the requests were not answered within the window.
inline constexpr double kHeldShare = 0.99;
inline bool is_held(const Counts& c) {
  return c.due > 0 &&
         static_cast<double>(c.answered_in_time) >= kHeldShare * static_cast<double>(c.due);
}

}  // namespace latency
