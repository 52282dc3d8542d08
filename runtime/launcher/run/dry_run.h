// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-run --dry-run: what a command line would do here, after everything that can be looked at
// without starting or writing anything.
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
  std::string program;   // its path
  bool fresh = true;     // no group of this name is there to be taken over
  int living = 0;        // its nodes that live
  std::string base;      // where the group's directory lies or will lie
  bool on_disk = false;  // something of the group lasts there, and it goes on with that
};

// Lines of "what: how", for people.
std::string plan_text(const Plan& plan);
// Of a group of several hosts.
std::string plan_text_of_hosts(const Options& options);
// What would refuse a start: privileges, LXC, ports, room.  Statuses as crane-run's.
Outcome check_plan(const Plan& plan);

}  // namespace crane::launcher
