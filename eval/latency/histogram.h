// SPDX-License-Identifier: Apache-2.0
// A histogram of high dynamic range: the width of a bin is a fixed fraction of its value, so that a
// microsecond and a second have the same precision, in a fixed amount of memory.
#pragma once

#include <boost/histogram.hpp>
#include <cstdint>
#include <vector>

namespace latency {

class Histogram {
 public:
  static constexpr double kLeastUs = 1, kMostUs = 1e8;
  static constexpr double kPrecision = 0.001;  // width of a bin, as a fraction of its value

  struct Bin {
    double upper_us;
    std::uint64_t count;
  };

  Histogram();
  void add(double us);
  std::uint64_t count() const { return count_; }
  double max_us() const { return max_us_; }
  // At most `share` of all values are above the result: the end of that bin, at most kPrecision too
  // high.
  double percentile_us(double share) const;
  std::vector<Bin> bins() const;  // the nonempty bins

 private:
  using Axis = boost::histogram::axis::regular<double, boost::histogram::axis::transform::log>;
  double upper_us(int bin) const;

  boost::histogram::histogram<std::tuple<Axis>, boost::histogram::dense_storage<std::uint64_t>>
      bins_;
  std::uint64_t count_ = 0;
  double max_us_ = 0;
};

}  // namespace latency
