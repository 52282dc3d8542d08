// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds processes that can write to the files of a directory.  A group begins with a copy of its
// --data directories: a copy made while a native server writes there is of no instant, and the
// native server's later writes would be missing in the group.
//
// A file is in a directory if one of the directories above it has the same device and inode.  Paths
// alone do not show that, because each process sees its own mounts: a container's overlay has
// the same paths with other files, and a bind mount has other paths with the same files.
//
// Only processes whose /proc entries this process may read are found: for root, all of them.
//
// Threads: plain functions.  They read /proc, and wait for no other process.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/setup/messages.h"

namespace crane::setup {

// The text of /proc/PID/fdinfo/N: whether the descriptor can write.
bool can_write(const std::string& fdinfo);

// A shared mapping that can write.
struct WritableMapping {
  std::string range;  // its name in /proc/PID/map_files
  std::uint64_t inode = 0;
  std::string path;  // absolute

  bool operator==(const WritableMapping&) const = default;
};
// A line of /proc/PID/maps; nullopt: it describes no such mapping of a file.
std::optional<WritableMapping> writable_mapping(const std::string& line);

struct Writer {
  pid_t pid = -1;
  std::string process;  // its name
  std::string file;     // one file that it can write to, with the path that the process sees
  bool maps = false;    // it has the file mapped, not open
};
// Another process that can write to a file in `directory`; nullopt: none was found.
std::optional<Writer> find_writer(const std::string& directory);

// Checks that no process can write to those of the directories from which the group will begin:
// those that `base`, the group's copy (checkpoint/base.h), does not contain yet.  Errors:
// kDataInUse.
Outcome check_not_in_use(const std::vector<std::string>& data, const std::string& base);

}  // namespace crane::setup
