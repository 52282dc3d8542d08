// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checkpoints that a group's replicas keep on this machine, for crane-ctl: whether the group
// runs or not, and beside nodes that make and remove some meanwhile (checkpoint/image.h).
//
// Threads: plain functions; all block on the disk, verify_checkpoint() for as long as reading
// takes.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/image.h"

namespace crane::launcher {

struct Kept {
  int replica = -1;  // in whose directory it is
  checkpoint::Listed listed;
};

struct AllKept {
  std::vector<Kept> checkpoints;      // newest first, then by replica
  std::vector<std::string> problems;  // sentences: what could not be looked at
  bool denied = false;                // one of them: not permitted
};
// Of <dir>/<group>/r*/checkpoints.
AllKept find_checkpoints(const std::string& dir, const std::string& group);

// {"group", "checkpoints": [{"replica", "name", "view", "index", "time", "bytes", "tier",
// "verified", "damage", "path"}]}: time in seconds since 1970, damage a sentence or null; of a
// damaged one what its manifest would tell is null.
nlohmann::json checkpoints_json(const std::string& group, const std::vector<Kept>& all);
std::string checkpoints_table(const nlohmann::json& listed);

// A checkpoint's name as a user may give it, without the leading zeros; empty: it is none.
std::string checkpoint_name(const std::string& given);

enum class Verdict { kWell, kDamaged, kRemoved, kDenied, kFailed };
// Reads all of it; its mark follows.  `sentence`: for the user, one line.
Verdict verify_checkpoint(const Kept& kept, std::string& sentence);

}  // namespace crane::launcher
