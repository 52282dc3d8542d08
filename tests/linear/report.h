// SPDX-License-Identifier: Apache-2.0
#pragma once
// What to show of a violation: as little of the history as cannot be explained.

#include <cstdint>
#include <string>

#include "tests/linear/checker.h"

namespace crane::linear {

struct Window {
  std::uint64_t at_ns = 0;  // the return of the first answer that no order explains
  std::size_t answers = 0;  // of this key, that answer included
  std::size_t size = 0;     // operations in the window
  std::string text;         // several lines, readable
};

// Of a key whose history is a violation:
//   the shortest beginning of the history that is one (all beginnings of a linearizable history are
//   linearizable), without the reads that are not needed for it (leaving a read out adds no order),
//   and of what is over before the rest begins only the values that it can have left.
Window failing_window(const KeyHistory& key, const Limits& limits = {});

}  // namespace crane::linear
