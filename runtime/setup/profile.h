// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Crane knows about particular servers, so that `crane-run -- apache2` needs no more words:
// arguments that keep them in the foreground, environment, directories.
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
  std::vector<std::string> environment = {};  // "NAME=value", over the caller's
  // Made before the server starts, links resolved; "USER:/path": that user's.
  std::vector<std::string> directories = {};
  std::uint32_t quantum = 0;  // 0: the scheduler's default
  // Its threads wait for each other in loops without calls: the stall rule (dmt/stall.h).
  bool spins = false;
  // What leaves the schedule by agreement: no thread waits for it.  "fsync", "computation",
  // "any-computation".
  std::vector<std::string> detach = {};
  // Before long computations that several of its threads or processes do at once; parallel mode.
  std::vector<SoftBarrier> soft_barriers = {};
  int stop_signal = SIGTERM;  // ends the server in order, whatever clients do
  std::string user = {};      // the server refuses to be root: it starts as this user
};

// Whoever starts the server as root starts it as the profile's user: puts setpriv before `program`
// and its `args`. It runs under Crane too, so nothing of it differs between replicas.
void become_user(const Profile& profile, std::string& program, std::vector<std::string>& args);

// The profile called `name`, or, when that is empty, the one that fits the program's base name;
// "default" if none does. `program` is the path, `args` what the user typed after it.
// Returns false when `name` is not known.
bool find_profile(const std::string& name, const std::string& program,
                  const std::vector<std::string>& args, Profile& profile);

// The options with the profile's word where the user said nothing.
NodeOptions with_profile(NodeOptions options, const Profile& profile);

// Names for --help and messages.
std::vector<std::string> profile_names();
// All that `detach` may name.
std::vector<std::string> detach_names();

// What a shell that reads `script` has in its environment afterwards (Debian's envvars files).
std::vector<std::string> environment_of_script(const std::string& script);

}  // namespace crane::setup
