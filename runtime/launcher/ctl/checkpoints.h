// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shows and verifies the checkpoints that a group's replicas keep on this machine
// (checkpoint/kept.h).
//
// Threads: plain functions; verify_checkpoint() blocks while it reads.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/kept.h"

namespace crane::launcher {

using checkpoint::AllKept;
using checkpoint::Kept;

// {"group", "checkpoints": [{"replica", "name", "view", "index", "time", "bytes", "tier",
// "verified", "damage", "path"}]}: time in seconds since 1970, damage a sentence or null.  If a
// checkpoint is damaged, the fields from its manifest are null.
nlohmann::json checkpoints_json(const std::string& group, const std::vector<Kept>& all);
std::string checkpoints_table(const nlohmann::json& listed);

// The full name of a checkpoint that a user names without leading zeros; empty: not a name.
std::string checkpoint_name(const std::string& given);

enum class Verdict { kWell, kDamaged, kForeign, kRemoved, kDenied, kFailed };
// Reads the whole checkpoint and updates its mark.  `sentence`: the result, one line for the user.
// `log_digest`: that of the group's log (checkpoint::digest_of_log()), or "" if unknown; a
// checkpoint of another group yields kForeign.
Verdict verify_checkpoint(const Kept& kept, const std::string& log_digest, std::string& sentence);

}  // namespace crane::launcher
