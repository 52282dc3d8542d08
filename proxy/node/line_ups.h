// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions before which the server's threads line up
// (runtime/preload/threads/line_up_point.h), in words.
//
// Threads: any; plain values.

#include <cstdint>
#include <string>
#include <vector>

#include "dmt/layout.h"
#include "proxy/node/config.h"

namespace crane::node {

struct LineUpStatus {
  std::string function, origin;  // who named it
  std::string state;             // "found", "refused", "not found": by no process so far
  std::uint32_t count = 0, timeout_us = 0, rounds = 0;
  std::uint64_t arrivals = 0;
};

std::vector<LineUpStatus> line_ups_of(const Config& config, const dmt::Layout& layout);

// At the server's end, into the log: what was named and never found.
void warn_of_missing_line_ups(const Config& config, const dmt::Layout& layout);

}  // namespace crane::node
