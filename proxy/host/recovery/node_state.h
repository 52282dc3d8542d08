// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of a replica's history that neither the segment nor the log contains: stored in a
// checkpoint, as of its entry.
//
// Threads: plain values and pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "dmt/sequence/entry.h"
#include "proxy/host/entry_counts.h"
#include "proxy/host/outputs.h"
#include "proxy/replica/recovery/upgrade.h"

namespace crane::node {

struct NodeState {
  Viewstamp at;                      // of the CHECKPOINT entry
  std::uint64_t position = 0;        // in the log, after that entry (consensus/core/log.h)
  std::vector<std::byte> facts;      // state of consensus (Consensus::group_facts)
  std::uint64_t stamp_ns = 0;        // of that entry: the virtual time
  std::uint64_t clock = 0;           // turns taken
  std::uint64_t hash = 0;            // of the schedule, at `clock`
  std::uint32_t last_pid = 0;        // in the server's pid namespace
  Index first_start{};               // the group's first START
  std::uint64_t passed = 0;          // clock that the leader has passed, by the log (dmt/stall.h)
  std::uint64_t verified = 0;        // live checking: the last log index at which all were equal
  std::uint64_t restarted_from = 0;  // where comparison restarted, or 0 (proxy/record/alarms.h)
  std::uint64_t log_bytes = 0;       // length of server.log
  EntryCounts entries{};             // committed
  replica::Upgrade::Server server;   // no command line: as configured
  bool handed_over = false;          // any build of Crane may continue from here (start_check.h)
  std::vector<EarlyPoint> early;     // points that its server has, or had at their clocks
  Outputs::State outputs;
};

nlohmann::json early_json(std::span<const EarlyPoint> points);
// Throws nlohmann::json::exception.
std::vector<EarlyPoint> early_points(const nlohmann::json& json);

nlohmann::json to_json(const NodeState& state);
// kDamaged: not the output of to_json().
Result<NodeState> node_state(const nlohmann::json& json);

}  // namespace crane::node
