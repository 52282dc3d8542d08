// SPDX-License-Identifier: Apache-2.0
#pragma once
// The file of a group's tick points (dmt/slices.h) in its directory, so that its next start begins
// with them.  A line is "<build id> <offset> <bytes> <flags are dead: 0 or 1> <weight in ps>", with
// the first two in hexadecimal.
//
// Threads: plain functions.

#include <span>
#include <string>
#include <vector>

#include "dmt/base/result.h"
#include "dmt/sequence/entry.h"

namespace crane::ticks {

// Empty if there is no file.  An unreadable line is left out, and `damaged` is set to it.
std::vector<TickPoint> read_points(const std::string& path, std::string& damaged);

// Replaces the file atomically.
Outcome write_points(const std::string& path, std::span<const TickPoint> points);

}  // namespace crane::ticks
