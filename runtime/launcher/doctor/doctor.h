// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks whether this machine can run groups: `crane-run doctor`, `crane-ctl doctor`.
//
// Threads: the caller must be single-threaded.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/launcher/doctor/checks.h"
#include "runtime/launcher/doctor/finding.h"

namespace crane::launcher {

struct Examination {
  std::string dir;  // directory of groups; empty: crane-run's default
  std::vector<Port> ports;
  Wanted wanted;
};

// Tests and measures for some seconds; leaves nothing behind.
std::vector<Finding> examine(const Examination& what);
// Writes the report to standard output and returns the exit status.
int print_report(const Report& report, const std::string& output);

}  // namespace crane::launcher
