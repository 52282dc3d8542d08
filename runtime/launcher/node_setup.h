// SPDX-License-Identifier: Apache-2.0
#pragma once
// Prepares and starts nodes: their configuration (JSON; proxy/host/config.h reads it), the group's
// secrets, and the process.
//
// Threads: plain functions.

#include <sys/types.h>

#include <string>
#include <vector>

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
  bool keeps_files = false;  // keep the server's files for the next start
};

std::string node_configuration(const NodeSetup& setup);

// The environment of this process; and its replacement, with the working directory, by that of the
// group's first start, because replicas and a log that is replayed must have it in common.
std::vector<std::string> environment_of_process();
void restore_environment(const std::vector<std::string>& environment, const std::string& directory);

std::string random_log_id();
std::string random_secret();

// Replaces the file atomically; only its owner can read it.
Outcome write_file(const std::string& path, const std::string& text);

// Runs crane-node --control-fd 3 --config FILE in a new session.  Its standard output and error go
// to `log`, or to this process's if `log` is empty.  Returns -1 with errno on failure.
pid_t spawn_node(const std::string& program, const std::string& config, int channel,
                 const std::string& log);

}  // namespace crane::launcher
