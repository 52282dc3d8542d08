// SPDX-License-Identifier: Apache-2.0
#pragma once
// Looks whether this machine can run groups: `crane-run doctor`, `crane-ctl doctor`.
//
// Threads: the caller must be single-threaded.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/launcher/doctor/checks.h"
#include "runtime/launcher/doctor/finding.h"

namespace crane::launcher {

struct Examination {
  std::string dir;  // of groups; empty: where crane-run has them by itself
  std::vector<Port> ports;
  Wanted wanted;
};

// Tries and measures for some seconds; leaves nothing behind.
std::vector<Finding> examine(const Examination& what);
// Writes the report to standard output; the exit status.
int tell(const Report& report, const std::string& output);

}  // namespace crane::launcher
