// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tick points of programs of Debian 12, so that already the first long computation is sliced.  For
// other builds the group finds points (known_points.def describes how these were found).
//
// Threads: plain functions.

#include <span>
#include <string>
#include <vector>

#include "dmt/sequence/entry.h"

namespace crane::ticks {

// The points of the programs that a command line names.
std::vector<TickPoint> known_points(std::span<const std::string> command);

}  // namespace crane::ticks
