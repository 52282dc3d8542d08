// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tick points of programs as Debian 12 has them, so that the first long computation is sliced
// already; of any other build the group finds its own (known_points.def says how these were found).
//
// Threads: plain functions.

#include <span>
#include <string>
#include <vector>

#include "dmt/sequence/entry.h"

namespace crane::ticks {

// Of the programs that a command line names.
std::vector<TickPoint> known_points(std::span<const std::string> command);

}  // namespace crane::ticks
