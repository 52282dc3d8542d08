// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-ctl top: what the replicas of this machine do just now, by two looks at them.
//
// Threads: plain functions; only look_at() asks nodes and reads /proc.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/launcher/ctl/process_tree.h"
#include "runtime/launcher/ctl/status_table.h"

namespace crane::launcher {

struct Request;

// One look: by group, what its nodes answered.
struct Look {
  std::int64_t at_ns = 0;  // CLOCK_MONOTONIC
  std::map<std::string, std::map<int, NodeAnswer>> groups;
  Processes processes;
};
Look look_at(const Request& request, const std::vector<std::string>& groups);

// A list with one object per replica that answered both times and is the same process: rates per
// second, processor time in percent of one processor, as members of the second look.
nlohmann::json rates_between(const Look& before, const Look& now);
std::string top_table(const nlohmann::json& rates);

}  // namespace crane::launcher
