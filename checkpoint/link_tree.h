// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tree of hard links: it has its own directories, and all other names in it are further names of
// existing files.  A program that replaces a file by rename, as dpkg does, leaves the tree
// unchanged; a program that writes into a file changes both.
//
// Threads: plain functions, which may block for as long as the disk does.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dmt/base/result.h"

namespace crane::checkpoint {

// The time when a directory's names last changed, in ns since 1970.
struct DirectoryTime {
  std::string path;
  std::int64_t ns = 0;
};
struct LinkedTree {
  std::vector<DirectoryTime> directories;  // of the original, with the times before reading
  std::size_t names = 0;
};

// Makes `to`, which must not exist, from the directory `from` on the same file system.  Mount
// points below `from`, and `left_out`, become empty directories.  A file that cannot get one more
// name (immutable, or too many links) is copied; a file that is removed meanwhile is omitted.
// kUnsupported: the two are on different file systems.
Outcome link_tree(const std::string& from, const std::string& to, const std::string& left_out,
                  LinkedTree& linked);
// Whether no directory has gained or lost a name since.
bool is_as_linked(const std::vector<DirectoryTime>& directories);

}  // namespace crane::checkpoint
