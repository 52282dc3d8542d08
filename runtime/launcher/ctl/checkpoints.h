// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checkpoints that a group's replicas keep on this machine (checkpoint/kept.h), as crane-ctl
// shows and verifies them.
//
// Threads: plain functions; verify_checkpoint() blocks for as long as reading takes.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/kept.h"

namespace crane::launcher {

using checkpoint::AllKept;
using checkpoint::Kept;

// {"group", "checkpoints": [{"replica", "name", "view", "index", "time", "bytes", "tier",
// "verified", "damage", "path"}]}: time in seconds since 1970, damage a sentence or null; of a
// damaged one what its manifest would tell is null.
nlohmann::json checkpoints_json(const std::string& group, const std::vector<Kept>& all);
std::string checkpoints_table(const nlohmann::json& listed);

// A checkpoint's name as a user may give it, without the leading zeros; empty: it is none.
std::string checkpoint_name(const std::string& given);

enum class Verdict { kWell, kDamaged, kForeign, kRemoved, kDenied, kFailed };
// Reads all of it; its mark follows.  `sentence`: for the user, one line.  `log_digest`: of the
// group's log (checkpoint::digest_of_log()), or "" where it is not known: kForeign is one of
// another group.
Verdict verify_checkpoint(const Kept& kept, const std::string& log_digest, std::string& sentence);

}  // namespace crane::launcher
