// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-ctl top: the present activity of the replicas, from two samples.  Processor time and memory
// of processes on other hosts are not known.
//
// Threads: plain functions; only look_at() sends requests to nodes and reads /proc.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/launcher/ctl/process_tree.h"
#include "runtime/launcher/ctl/status_table.h"

namespace crane::launcher {

struct Request;

// One sample: the answers of the nodes of each group.
struct Look {
  std::int64_t at_ns = 0;  // CLOCK_MONOTONIC
  std::map<std::string, std::map<int, NodeAnswer>> groups;
  Processes processes;
};
Look look_at(const Request& request, const std::vector<std::string>& groups);

// A list with one object per replica that answered both times with the same process: rates per
// second, processor time in percent of one processor, operations as in operations.h.  Members are
// those of the second sample.
nlohmann::json rates_between(const Look& before, const Look& now);
std::string top_table(const nlohmann::json& rates);

}  // namespace crane::launcher
