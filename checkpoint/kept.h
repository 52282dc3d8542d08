// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checkpoints that a group's replicas keep on this machine, for a node that recovers and for
// the operator's tool: whether the group runs or not, and beside nodes that make and remove some
// meanwhile (image.h).
//
// Threads: plain functions; they read manifests only.

#include <map>
#include <string>
#include <vector>

#include "checkpoint/image.h"

namespace crane::checkpoint {

// The replicas with a directory below a group's: number and directory.
std::map<int, std::string> replica_directories(const std::string& group_directory, bool& denied);

// To say "there is none" of what one may not see would be wrong.
bool is_denied(const std::string& path);

struct Kept {
  int replica = -1;  // in whose directory it is
  Listed listed;
};

struct AllKept {
  std::vector<Kept> checkpoints;      // newest first, then by replica
  std::vector<std::string> problems;  // sentences: what could not be looked at
  bool denied = false;                // one of them: not permitted
};
// Of <group_directory>/r*/checkpoints; makes nothing where there is none.
AllKept find_kept(const std::string& group_directory);

// Which one a replica would recover from, for who asks often: a manifest is read once.
class Newest {
 public:
  // The newest of the group's, or nullptr, with this digest of its log, that is whole as far as its
  // manifest tells; a distrusted one only where all are.
  const Listed* look(const std::string& group_directory, const std::string& log_digest);

 private:
  std::map<std::string, Listed> known_;  // by path
};

}  // namespace crane::checkpoint
