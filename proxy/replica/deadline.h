// SPDX-License-Identifier: Apache-2.0
#pragma once
// Deadlines of the machines of a replica: CLOCK_MONOTONIC, ns.

#include <cstdint>
#include <limits>

namespace crane::replica {

// Nothing is due before the next event.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

}  // namespace crane::replica
