// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that can be found wrong before the first node starts, and the group's directories.
//
// The group holds a lock on each of its two directories while it runs; the kernel releases it
// when crane-run dies however it dies, so what lies in a directory that nobody holds is left over
// from a killed group and is removed.

#include <string>
#include <vector>

#include "runtime/launcher/messages.h"
#include "runtime/launcher/options.h"

namespace crane::launcher {

// The programs of Crane, found beside crane-run.
struct Parts {
  std::string node;
  std::string library;
};

Problem find_parts(Parts& parts);

// Root privilege and LXC when containers are wanted; published ports that are named.
Problem check_machine(const Options& options);

class GroupDirectories {
 public:
  GroupDirectories() = default;
  ~GroupDirectories();
  GroupDirectories(const GroupDirectories&) = delete;
  GroupDirectories& operator=(const GroupDirectories&) = delete;

  // Creates and locks <dir>/<name> and /dev/shm/crane.<name>, with a directory for each replica.
  // Statuses: kDirectory, kDiskFull, kGroupExists, kSharedVersion.
  Problem create(const Options& options);
  // Removes both, with all they hold. Nothing happens before create().
  void remove();
  // Leaves <dir>/<name> (logs) in place at the end.
  void keep_logs() { keep_logs_ = true; }

  const std::string& dir() const { return dir_; }
  const std::string& shm_dir() const { return shm_dir_; }

 private:
  Problem lock(const std::string& directory, const std::string& name);

  std::string dir_, shm_dir_;
  std::vector<int> locks_;
  bool keep_logs_ = false;
};

}  // namespace crane::launcher
