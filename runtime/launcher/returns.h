// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who is started again and again without lasting is not started any more.
//
// Threads: one.

#include <cstdint>

#include "runtime/launcher/child.h"

namespace crane::launcher {

class Returns {
 public:
  // Before one more start; false: it is one too many in a row.  One that does not count is no
  // attempt that failed.
  bool once_more(bool counts = true) {
    if (now_ms() - began_ms_ > kLastsMs) in_a_row_ = 0;
    return !counts || ++in_a_row_ <= kInARowMax;
  }
  void begins() { began_ms_ = now_ms(); }
  void forget() { in_a_row_ = 0; }

 private:
  static constexpr int kInARowMax = 3;
  static constexpr std::int64_t kLastsMs = 30'000;

  int in_a_row_ = 0;
  std::int64_t began_ms_ = 0;
};

}  // namespace crane::launcher
