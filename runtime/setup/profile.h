// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Crane knows about particular servers, so that `crane-run -- apache2` needs no more options:
// arguments that keep the server in the foreground, environment, directories.
//
// Threads: plain values.

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/setup/option_table.h"
#include "runtime/setup/soft_barrier.h"

namespace crane::setup {

struct Profile {
  std::string name;
  std::vector<std::string> args = {};         // appended to the user's
  std::vector<std::string> environment = {};  // "NAME=value", override the caller's
  // Made before the server starts, with links resolved; "USER:/path": owned by that user.
  std::vector<std::string> directories = {};
  std::uint32_t quantum = 0;  // 0: the scheduler's default
  // The server's threads wait for each other in loops without calls: the stall rule (dmt/stall.h).
  bool spins = false;
  // Operations that leave the schedule by agreement, so no thread waits for them: "fsync",
  // "computation", "any-computation".
  std::vector<std::string> detach = {};
  // Precede long computations that several of the server's threads or processes do at once;
  // parallel mode.
  std::vector<SoftBarrier> soft_barriers = {};
  int stop_signal = SIGTERM;  // stops the server cleanly, whatever its clients do
  std::string user = {};      // the user of a server that refuses to run as root
};

// If Crane runs as root, makes the server start as the profile's user: puts setpriv before
// `program` and its `args`.  setpriv runs under Crane, too, so it does the same on all replicas.
void become_user(const Profile& profile, std::string& program, std::vector<std::string>& args);

// Finds the profile called `name`.  If `name` is empty, finds the one for the program's base name,
// or "default".  `program` is the path, `args` are the user's arguments for it.  Returns false if
// `name` is unknown.
bool find_profile(const std::string& name, const std::string& program,
                  const std::vector<std::string>& args, Profile& profile);

// The options, with the profile's values for those that the user did not set.
NodeOptions with_profile(NodeOptions options, const Profile& profile);

// All profiles' names, for --help and messages.
std::vector<std::string> profile_names();
// All words that `detach` may contain.
std::vector<std::string> detach_names();

// The environment of a shell after it has read `script` (for Debian's envvars files).
std::vector<std::string> environment_of_script(const std::string& script);

}  // namespace crane::setup
