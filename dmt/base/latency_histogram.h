// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts durations in buckets that are the same on all replicas, as metrics systems do.  Each
// bucket counts durations up to its bound and above the previous bound.
//
// Threads: plain value.  Durations are nanoseconds.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace crane {

struct LatencyHistogram {
  static constexpr std::array<std::int64_t, 19> kBounds = {
      5'000,       10'000,      20'000,        50'000,        100'000,      200'000,    500'000,
      1'000'000,   2'000'000,   5'000'000,     10'000'000,    20'000'000,   50'000'000, 100'000'000,
      200'000'000, 500'000'000, 1'000'000'000, 2'000'000'000, 5'000'000'000};

  std::array<std::uint64_t, kBounds.size() + 1> counts{};  // the last bucket: longer than all
                                                           // bounds
  std::int64_t sum_ns = 0;

  void add(std::int64_t ns) noexcept {
    const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), ns) - kBounds.begin();
    ++counts[static_cast<std::size_t>(bucket)];
    sum_ns += ns;
  }
  std::uint64_t total() const noexcept {
    std::uint64_t all = 0;
    for (const std::uint64_t count : counts) all += count;
    return all;
  }
  // The durations added since this histogram was equal to `earlier`.
  LatencyHistogram since(const LatencyHistogram& earlier) const noexcept {
    LatencyHistogram added;
    for (std::size_t i = 0; i < counts.size(); ++i) added.counts[i] = counts[i] - earlier.counts[i];
    added.sum_ns = sum_ns - earlier.sum_ns;
    return added;
  }
  // The bound of the bucket that contains this share of all durations (0 to 1), or the highest
  // bound if the bucket has none; 0: the histogram is empty.
  std::int64_t quantile_ns(double share) const noexcept {
    const auto wanted = static_cast<double>(total()) * share;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts.size() && total() > 0; ++i) {
      seen += counts[i];
      if (static_cast<double>(seen) >= wanted) return kBounds[std::min(i, kBounds.size() - 1)];
    }
    return 0;
  }
};

}  // namespace crane
