// SPDX-License-Identifier: Apache-2.0
// GOAL    The histogram's percentiles match those of the values, from a microsecond to a minute.
// METHOD  Random values of all magnitudes, compared with a sorted list.
// CHECKS  Each percentile is at most kPrecision above the list's; the maximum is exact; no value is
//         lost.
// REPLAY  RC_PARAMS, which a failure prints
#include "eval/latency/histogram.h"

#include <algorithm>
#include <cmath>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

namespace {

using latency::Histogram;

TEST_CASE("The percentiles of an empty histogram are 0") {
  const Histogram h;
  CHECK(h.count() == 0);
  CHECK(h.percentile_us(0.99) == 0);
  CHECK(h.bins().empty());
}

TEST_CASE("The percentiles of random values match those of a sorted list") {
  CHECK(rc::check([] {
    const auto exponents =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 78'000)));
    Histogram h;
    std::vector<double> values;
    for (const int e : exponents) {
      values.push_back(std::pow(10.0, e / 10'000.0));
      h.add(values.back());
    }
    std::sort(values.begin(), values.end());
    for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto rank =
          static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()) - 1e-9));
      const double wanted = values[std::max<std::size_t>(rank, 1) - 1];
      const double found = h.percentile_us(share);
      RC_ASSERT(found >= wanted * (1 - 1e-9));
      RC_ASSERT(found <= wanted * (1 + 1.01 * Histogram::kPrecision));
    }
    RC_ASSERT(h.max_us() == values.back());
  }));
}

TEST_CASE("Values beyond both ends are counted, and the maximum stays exact") {
  Histogram h;
  h.add(0.25);
  h.add(3e9);
  CHECK(h.percentile_us(0.5) <= Histogram::kLeastUs);
  CHECK(h.percentile_us(1) == 3e9);
  std::uint64_t sum = 0;
  for (const Histogram::Bin& bin : h.bins()) sum += bin.count;
  CHECK(sum == 2);
}

}  // namespace
