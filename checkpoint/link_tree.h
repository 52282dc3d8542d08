// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tree of hard links: it has directories of its own, and all other names in it are further names
// of the files that are there.  What replaces a file by renaming another one onto it, as dpkg does,
// leaves the tree as it was; what writes into a file writes into both.
//
// Threads: plain functions, which may block for as long as the disk does.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/file_error.h"

namespace crane::checkpoint {

// When a directory's list of names last changed, in ns since 1970.
struct DirectoryTime {
  std::string path;
  std::int64_t ns = 0;
};
struct LinkedTree {
  std::vector<DirectoryTime> directories;  // of the original, as they were before they were read
  std::size_t names = 0;
};

// Makes `to`, which must not exist, of the directory `from` on the same file system.  What is
// mounted below `from` is an empty directory, and so is `left_out`.  A file that may have no more
// names (immutable, or too many) is copied; one that vanishes meanwhile is not there.
// kUnsupported: the two are on different file systems.
Outcome link_tree(const std::string& from, const std::string& to, const std::string& left_out,
                  LinkedTree& linked);
// Whether no directory has got or lost a name since.
bool is_as_linked(const std::vector<DirectoryTime>& directories);

}  // namespace crane::checkpoint
