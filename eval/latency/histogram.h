// SPDX-License-Identifier: Apache-2.0
// A histogram of high dynamic range: bins as wide as a part of what they hold, so that a
// microsecond and a second are kept with the same precision, in memory that is fixed.
#pragma once

#include <boost/histogram.hpp>
#include <cstdint>
#include <vector>

namespace latency {

class Histogram {
 public:
  static constexpr double kLeastUs = 1, kMostUs = 1e8;
  static constexpr double kPrecision = 0.001;  // width of a bin, of its value

  struct Bin {
    double upper_us;
    std::uint64_t count;
  };

  Histogram();
  void add(double us);
  std::uint64_t count() const { return count_; }
  double max_us() const { return max_us_; }
  // No more than `share` of all are above it: the end of that bin, at most kPrecision too high.
  double percentile_us(double share) const;
  std::vector<Bin> bins() const;  // those that are not empty

 private:
  using Axis = boost::histogram::axis::regular<double, boost::histogram::axis::transform::log>;
  double upper_us(int bin) const;

  boost::histogram::histogram<std::tuple<Axis>, boost::histogram::dense_storage<std::uint64_t>>
      bins_;
  std::uint64_t count_ = 0;
  double max_us_ = 0;
};

}  // namespace latency
