// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a node needs to start: its configuration (JSON; proxy/host/config.h reads it), the group's
// secrets, and the process itself.
//
// Threads: plain functions.

#include <sys/types.h>

#include <string>

#include "runtime/launcher/options.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/preflight.h"
#include "runtime/setup/profile.h"
#include "runtime/supervise/step.h"

namespace crane::launcher {

using setup::Profile;
using setup::ProgramPaths;

struct NodeSetup {
  const Options& options;
  const Profile& profile;
  const ProgramPaths& parts;
  const std::string& dir;
  const std::string& shm_dir;
  const std::string& program;
  int replica;
  const std::string& log_id;  // decimal
  const std::string& secret;  // 64 hexadecimal digits
  const supervise::Plan& plan;
  bool keeps_files = false;  // of its server, for the next start
};

std::string node_configuration(const NodeSetup& setup);

std::string random_log_id();
std::string random_secret();

// Replaces the file at once or not at all; readable by its owner only.
Outcome write_file(const std::string& path, const std::string& text);

// crane-node --control-fd 3 --config FILE, in a session of its own; its standard output and error
// go to `log`, or to ours when that is empty. -1 with errno.
pid_t spawn_node(const std::string& program, const std::string& config, int channel,
                 const std::string& log);

}  // namespace crane::launcher
