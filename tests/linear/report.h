// SPDX-License-Identifier: Apache-2.0
#pragma once
// The report of a violation: the smallest part of the history that cannot be explained.

#include <cstdint>
#include <string>

#include "tests/linear/checker.h"

namespace crane::linear {

struct Window {
  std::uint64_t at_ns = 0;  // the return of the first answer that no order explains
  std::size_t answers = 0;  // for this key, including that answer
  std::size_t size = 0;     // operations in the window
  std::string text;         // several lines, readable
};

// For a key with a violation, returns the shortest beginning of its history that is a violation
// (all beginnings of a linearizable history are linearizable). Reads that are not needed are left
// out (leaving a read out allows no further order). Operations that were over before the rest began
// are replaced by the values that they can have left.
Window failing_window(const KeyHistory& key, const Limits& limits = {});

}  // namespace crane::linear
