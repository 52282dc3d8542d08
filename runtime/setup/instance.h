// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the replica that a systemd unit runs: crane@shop, or crane@shop:2 if several replicas run
// on one machine.
//
// Threads: plain functions.

#include <optional>
#include <string>

#include "runtime/setup/group_file.h"
#include "runtime/setup/messages.h"

namespace crane::setup {

struct Instance {
  std::string path;            // the group's file
  std::optional<int> replica;  // nullopt: the one with an address of this host
};

// Parses "NAME" or "NAME:REPLICA"; the file is `directory`/NAME.toml.  Errors: kUsage.
Outcome parse_instance(const std::string& word, const std::string& directory, Instance& instance);
// Finds the only replica with an address of this host.  Errors: kGroupFile if there is none, or
// there are several.
Outcome own_replica(const std::string& path, const GroupFile& file, int& replica);

}  // namespace crane::setup
