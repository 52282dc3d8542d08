// SPDX-License-Identifier: Apache-2.0
#pragma once
// The output of crane-ctl status: the answers of a group's nodes as one JSON object or as a table.
//
// Threads: plain functions.

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/launcher/control_client.h"

namespace crane::launcher {

// The health of a group; the value is crane-ctl's exit status.
enum class Health : int { kWell = 0, kDegraded = 1, kNoLeader = 2, kNotServing = 6 };

struct NodeAnswer {
  Reply reply = Reply::kAbsent;
  nlohmann::json status;             // if reply is kAnswer
  nlohmann::json returns = nullptr;  // how an absent replica recovers; null: unknown
  bool here = true;                  // it was asked at this machine's socket, not over a link
  nlohmann::json operations{};       // of a replica that starts (runtime/control/start_file.h)
};

// The object that `crane-ctl schema status` describes (runtime/control/answers.h).  For replicas of
// this machine it contains the nodes' own answers.  For replicas of other hosts it contains what
// the leader knows, if the leader is on this machine; otherwise what they reported to the node of
// this machine that knows the newest view.  The verdict is control::verdict_of(). `unsupervised`: a
// hint for the operator if crane-run started the group and no crane-run supervises it now;
// otherwise empty.
nlohmann::json summarise(const std::string& group, const std::map<int, NodeAnswer>& answers,
                         const std::string& unsupervised = "");
Health health_of(const nlohmann::json& summary);
std::string table_of(const nlohmann::json& summary);
// The output of `member list -o json`.
nlohmann::json members_json(const nlohmann::json& summary);
// The members that the leader reports, else the node of the newest view; empty: no node answers.
std::string members_of(const nlohmann::json& summary);

}  // namespace crane::launcher
