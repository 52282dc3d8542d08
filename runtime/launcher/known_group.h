// SPDX-License-Identifier: Apache-2.0
#pragma once
// group.json of a group whose data last (lasting.h): its identity, and the parameters of its start.
// It contains the group's secret: mode 0600.
//
// Threads: plain functions.

#include <cstdint>
#include <string>
#include <vector>

#include "dmt/base/result.h"

namespace crane::launcher {

inline constexpr char kKnownGroupName[] = "group.json";

struct KnownGroup {
  std::string name;
  std::string log_id, secret, durability;
  int replicas = 0, places = 0;
  std::vector<std::string> data;
  // The server that replays the inputs: words, environment and directory must be those of the log.
  std::vector<std::string> program, environment;
  std::string working_directory;
  std::vector<std::uint64_t> machines;  // digest of the machine's copy, per directory
};

// The number of a log's id (`log_id` in group.json and running.json).
std::uint64_t number_of_log(const std::string& log_id);

std::string text_of(const KnownGroup& group);
// Fails with kDamaged if the text is not valid.
Result<KnownGroup> parse_known_group(const std::string& text);

}  // namespace crane::launcher
