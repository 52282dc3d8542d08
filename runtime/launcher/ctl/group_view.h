// SPDX-License-Identifier: Apache-2.0
#pragma once
// Builds the snapshot for the verdict on a group from the answers of this machine's nodes.
//
// Threads: plain functions.

#include <map>
#include <nlohmann/json.hpp>

#include "runtime/control/verdict.h"
#include "runtime/launcher/ctl/status_table.h"

namespace crane::launcher {

// In place of a leader's number: no replica leads.
inline constexpr int kNoReplicaNumber = 255;

// The status of the leader in the highest view; nullptr: none leads.  A deposed leader may not know
// of a newer view yet.
const nlohmann::json* leader_of(const std::map<int, NodeAnswer>& answers);
// The status that decides about the other replicas: the leader's, else that of the newest view.
const nlohmann::json* witness_of(const std::map<int, NodeAnswer>& answers);

// REQUIRES: `summary` has its leader and members.
control::GroupView seen_by(const std::map<int, NodeAnswer>& answers, const nlohmann::json& summary);

}  // namespace crane::launcher
