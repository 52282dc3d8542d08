// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tick points of a group (dmt/slices.h) in its directory, so that its next start begins with
// them: one line each, "<build id> <offset> <bytes> <flags are dead: 0 or 1> <weight in ps>", the
// first two hexadecimal.
//
// Threads: plain functions.

#include <span>
#include <string>
#include <vector>

#include "dmt/base/result.h"
#include "dmt/sequence/entry.h"

namespace crane::ticks {

// Empty where there is no file.  A line that cannot be read is left out, and `damaged` names it.
std::vector<TickPoint> read_points(const std::string& path, std::string& damaged);

// The file is the old one or the new one, whatever happens.
Outcome write_points(const std::string& path, std::span<const TickPoint> points);

}  // namespace crane::ticks
