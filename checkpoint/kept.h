// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checkpoints that a group's replicas keep on this machine, for a node that recovers and for
// crane-ctl.  The functions work whether the group runs or not, and while nodes make and remove
// checkpoints (image.h).
//
// Threads: plain functions, which read only manifests.

#include <map>
#include <string>
#include <vector>

#include "checkpoint/image.h"

namespace crane::checkpoint {

// The replicas with a directory below the group's: number and directory.
std::map<int, std::string> replica_directories(const std::string& group_directory, bool& denied);

// Whether the caller may not read `path`: then it must not report that there is none.
bool is_denied(const std::string& path);

struct Kept {
  int replica = -1;  // the replica that keeps it
  Listed listed;
};

struct AllKept {
  std::vector<Kept> checkpoints;      // newest first, then by replica
  std::vector<std::string> problems;  // sentences: what could not be read
  bool denied = false;                // one of the problems is a missing permission
};
// Reads <group_directory>/r*/checkpoints; makes no directories.
AllKept find_kept(const std::string& group_directory);

// The checkpoint that a replica would recover from.  For frequent calls: it reads each manifest
// once.
class Newest {
 public:
  // The group's newest checkpoint with a usable manifest and this digest of the log, or nullptr.  A
  // distrusted one only if all are.
  const Listed* look(const std::string& group_directory, const std::string& log_digest);

 private:
  std::map<std::string, Listed> known_;  // by path
};

}  // namespace crane::checkpoint
