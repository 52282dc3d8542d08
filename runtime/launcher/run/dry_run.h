// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-run --dry-run: describes what a command line would do on this machine, and makes all checks
// that neither start nor write anything.
//
// Threads: plain functions.

#include <string>

#include "runtime/launcher/options.h"
#include "runtime/launcher/take_over.h"
#include "runtime/setup/preflight.h"
#include "runtime/setup/profile.h"

namespace crane::launcher {

struct Plan {
  const Options& options;
  const setup::Profile& profile;
  std::string program;   // path of the server's program
  bool fresh = true;     // no group of this name exists that could be taken over
  int living = 0;        // number of the group's nodes that run
  std::string base;      // parent of the group's directory
  bool on_disk = false;  // the group starts from what it kept in its directory
};

// The plan of a group on one machine, one line per item.
std::string plan_text(const Plan& plan);
// The plan of a group on several hosts.
std::string plan_text_of_hosts(const Options& options);
// Checks privileges, LXC, ports and room for a start.  Fails with crane-run's statuses.
Outcome check_plan(const Plan& plan);

}  // namespace crane::launcher
