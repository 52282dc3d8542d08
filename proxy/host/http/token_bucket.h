// SPDX-License-Identifier: Apache-2.0
#pragma once
// A limit for events per second.
//
// Pure.  Threads: one object, one thread.

#include <algorithm>
#include <cstdint>

namespace crane::node {

class TokenBucket {
 public:
  // `most`: how many events may happen at once after a pause.
  TokenBucket(double per_second, double most) noexcept
      : per_second_(per_second), most_(most), tokens_(most) {}

  // True: the event may happen, and is counted.
  bool take(std::int64_t now_ns) noexcept {
    const double passed_s = static_cast<double>(now_ns - at_ns_) / 1e9;
    tokens_ = std::min(most_, tokens_ + std::max(passed_s, 0.0) * per_second_);
    at_ns_ = now_ns;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  const double per_second_, most_;
  double tokens_;
  std::int64_t at_ns_ = 0;
};

}  // namespace crane::node
