// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processor share of work on a checkpoint beside servers: small at first, never zero, and
// growing with the time that the work has waited for a processor.  Work that a replica waits for (a
// lost replica returns, or the log has little room left) has the usual share from the start.
//
// Threads: a plain value.
// INVARIANT SHARE-1  Work always has at least kLeast percent of the usual share, its share never
//                    shrinks while it waits, and reaches kMost within kMostNs of waiting.

#include <array>
#include <cstdint>

namespace crane::checkpoint {

struct WorkShare {
  // Percent of what any other process gets.
  static constexpr unsigned kLeast = 10, kUsual = 100, kMost = 300;
  static constexpr std::int64_t kMostNs = 20'000'000'000;

  // `waited_ns`: time spent waiting for processors since the work began.
  static constexpr unsigned percent(std::int64_t waited_ns, bool urgent) noexcept {
    for (const Step& step : urgent ? kUrgent : kCalm) {
      if (waited_ns >= step.from_ns) return step.percent;
    }
    return kLeast;
  }
  // For a process whose control group has no weight: nearly the same effect within one group.
  static constexpr int nice_value(unsigned percent) noexcept {
    return percent < 30 ? 10 : percent < kUsual ? 5 : percent < kMost ? 0 : -5;
  }

 private:
  struct Step {
    std::int64_t from_ns;
    unsigned percent;
  };
  static constexpr std::array<Step, 4> kCalm{
      {{kMostNs, kMost}, {5'000'000'000, kUsual}, {500'000'000, 30}, {0, kLeast}}};
  static constexpr std::array<Step, 4> kUrgent{
      {{2'000'000'000, kMost}, {500'000'000, 200}, {0, kUsual}, {0, kUsual}}};
};

}  // namespace crane::checkpoint
