// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which replica a unit of systemd's is: crane@shop, or crane@shop:2 where several run on one
// machine.
//
// Threads: plain functions.

#include <optional>
#include <string>

#include "runtime/setup/group_file.h"
#include "runtime/setup/messages.h"

namespace crane::setup {

struct Instance {
  std::string path;            // the group's file
  std::optional<int> replica;  // nothing: the one whose address this host has
};

// Of "NAME" or "NAME:REPLICA": the file is `directory`/NAME.toml.  kUsage.
Outcome parse_instance(const std::string& word, const std::string& directory, Instance& instance);
// The only replica whose address this host has.  kGroupFile: there is none, or there are several.
Outcome own_replica(const std::string& path, const GroupFile& file, int& replica);

}  // namespace crane::setup
