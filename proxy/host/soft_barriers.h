// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of the server's soft barriers (runtime/preload/trap/soft_barrier_point.h) for the
// status and the log.
//
// Threads: any; plain values.

#include <cstdint>
#include <string>
#include <vector>

#include "dmt/layout.h"
#include "proxy/host/config.h"

namespace crane::node {

struct SoftBarrierStatus {
  std::string function, origin;  // origin: the option or profile that names it
  std::string state;             // "found", "refused", "not found" (in no process so far)
  std::uint32_t count = 0, timeout_us = 0, rounds = 0;
  std::uint64_t arrivals = 0;
};

std::vector<SoftBarrierStatus> soft_barriers_of(const Config& config, const dmt::Layout& layout);

// At the server's end, logs the soft barriers whose function was never found.
void warn_of_missing_soft_barriers(const Config& config, const dmt::Layout& layout);

}  // namespace crane::node
