// SPDX-License-Identifier: Apache-2.0
#pragma once
// What crane-ctl status shows: the answers of a group's nodes as one JSON object or as a table.
//
// Threads: plain functions.

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/launcher/control_client.h"

namespace crane::launcher {

// How well a group is, and crane-ctl's exit status for it.
enum class Health : int { kWell = 0, kDegraded = 1, kNoLeader = 2, kNotServing = 6 };

struct NodeAnswer {
  Reply reply = Reply::kAbsent;
  nlohmann::json status;             // when kAnswer
  nlohmann::json returns = nullptr;  // of one that is away: how it recovers; null: unknown
};

// As `crane-ctl schema status` has it: runtime/control/answers.h.  The nodes of this machine speak
// for themselves; of the others' replicas stands what the leader knows if it is here, else what
// they have told the node here that knows the newest view.  The verdict is control::verdict_of().
// `unsupervised`: crane-run started the group and no crane-run supervises it now; what to do about
// that.
nlohmann::json summarise(const std::string& group, const std::map<int, NodeAnswer>& answers,
                         const std::string& unsupervised = "");
Health health_of(const nlohmann::json& summary);
std::string table_of(const nlohmann::json& summary);
// As `member list -o json` has them.
nlohmann::json members_json(const nlohmann::json& summary);
// The members by the word of who leads, else of the newest view that answers; empty: no node tells.
std::string members_of(const nlohmann::json& summary);

}  // namespace crane::launcher
