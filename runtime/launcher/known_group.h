// SPDX-License-Identifier: Apache-2.0
#pragma once
// group.json of a group that lasts (lasting.h): its identity, and what it was started with.  It has
// the group's secret: mode 0600.
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
  // What its inputs are run by again: words, environment and directory must be those of the log.
  std::vector<std::string> program, environment;
  std::string working_directory;
  std::vector<std::uint64_t> machines;  // digest of the machine's, per directory
};

// A log's id (`log_id` here and in running.json) as a number.
std::uint64_t number_of_log(const std::string& log_id);

std::string text_of(const KnownGroup& group);
// kDamaged: it is none.
Result<KnownGroup> parse_known_group(const std::string& text);

}  // namespace crane::launcher
