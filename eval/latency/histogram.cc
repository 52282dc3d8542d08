// SPDX-License-Identifier: Apache-2.0
#include "eval/latency/histogram.h"

#include <algorithm>
#include <cmath>

namespace latency {
namespace {

unsigned bins_needed() {
  const double each = std::log1p(Histogram::kPrecision);
  return static_cast<unsigned>(
      std::ceil(std::log(Histogram::kMostUs / Histogram::kLeastUs) / each));
}

}  // namespace

Histogram::Histogram() : bins_(Axis(bins_needed(), kLeastUs, kMostUs)) {}

void Histogram::add(double us) {
  bins_(us);
  ++count_;
  max_us_ = std::max(max_us_, us);
}

// Bin -1 holds values below the axis, the last bin those above it.
double Histogram::upper_us(int bin) const {
  const auto& axis = bins_.axis();
  return bin >= axis.size() ? max_us_ : std::min(max_us_, axis.value(bin + 1));
}

double Histogram::percentile_us(double share) const {
  const auto wanted =
      static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_) - 1e-9));
  std::uint64_t seen = 0;
  for (int bin = -1; bin <= bins_.axis().size(); ++bin) {
    seen += bins_.at(bin);
    if (seen >= wanted && seen > 0) return upper_us(bin);
  }
  return max_us_;
}

std::vector<Histogram::Bin> Histogram::bins() const {
  std::vector<Bin> found;
  for (int bin = -1; bin <= bins_.axis().size(); ++bin) {
    if (const std::uint64_t count = bins_.at(bin); count > 0)
      found.push_back({upper_us(bin), count});
  }
  return found;
}

}  // namespace latency
