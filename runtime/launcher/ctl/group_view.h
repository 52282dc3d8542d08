// SPDX-License-Identifier: Apache-2.0
#pragma once
// The snapshot that the verdict on a group is made of, from what the nodes of this machine answer.
//
// Threads: plain functions.

#include <map>
#include <nlohmann/json.hpp>

#include "runtime/control/verdict.h"
#include "runtime/launcher/ctl/status_table.h"

namespace crane::launcher {

// No replica's number: none leads.
inline constexpr int kNoReplicaNumber = 255;

// The one that leads in the highest view: a deposed one may not know yet.  nullptr: none.
const nlohmann::json* leader_of(const std::map<int, NodeAnswer>& answers);
// The node whose word on the others counts: the one that leads, else that of the newest view.
const nlohmann::json* witness_of(const std::map<int, NodeAnswer>& answers);

// `summary`: with its leader and members.
control::GroupView seen_by(const std::map<int, NodeAnswer>& answers, const nlohmann::json& summary);

}  // namespace crane::launcher
