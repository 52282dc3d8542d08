// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions before which the server's threads line up
// (runtime/preload/trap/soft_barrier_point.h), in words.
//
// Threads: any; plain values.

#include <cstdint>
#include <string>
#include <vector>

#include "dmt/layout.h"
#include "proxy/host/config.h"

namespace crane::node {

struct SoftBarrierStatus {
  std::string function, origin;  // who named it
  std::string state;             // "found", "refused", "not found": by no process so far
  std::uint32_t count = 0, timeout_us = 0, rounds = 0;
  std::uint64_t arrivals = 0;
};

std::vector<SoftBarrierStatus> soft_barriers_of(const Config& config, const dmt::Layout& layout);

// At the server's end, into the log: what was named and never found.
void warn_of_missing_soft_barriers(const Config& config, const dmt::Layout& layout);

}  // namespace crane::node
