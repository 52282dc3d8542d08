// SPDX-License-Identifier: Apache-2.0
#pragma once
// The newest events of the group's replicas on this machine, for the page: what crane-ctl events
// shows, without asking an operator to log in.  Other machines' replicas have theirs; the leader's
// list says when they went and came.
//
// Threads: the node's one thread.  It reads the ends of files, and only of files that have changed.
// Errors: a file that cannot be read has no events; crane-ctl events reports it.

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace crane::node {

class RecentEvents {
 public:
  static constexpr std::size_t kCount = 20;
  static constexpr std::size_t kTailBytes = 8 << 10;  // of each file

  // `group_directory`: has the replicas' directories.  The oldest event is the first one.
  nlohmann::json look(const std::string& group_directory);

 private:
  struct File {
    ino_t inode = 0;
    off_t size = -1;
    std::vector<nlohmann::json> events;
  };
  const std::vector<nlohmann::json>& events_in(const std::string& path);

  std::map<std::string, File> files_;
};

}  // namespace crane::node
