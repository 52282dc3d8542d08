// SPDX-License-Identifier: Apache-2.0
#pragma once
// The base of a group: a tree with the initial content of the server's lasting directories
// (--data).  An overlay's upper directory begins as a copy of it (ServerOptions::upper).
//
// A lasting directory is opaque in it: the server never sees the machine's directory of that name,
// which may change and which Crane never writes.  The server's changes are in the upper directory,
// so every checkpoint contains them.
//
// The base is made when the group begins, gets its name when it is complete (BASE-1), and never
// changes.  So a server that replays all inputs begins with the same files as the first server.
//
// Threads: plain functions, which may block for as long as the disk does.
// INVARIANT BASE-1  A directory with a base's name contains every lasting directory completely.

#include <string>
#include <vector>

#include "dmt/base/result.h"

namespace crane::checkpoint {

struct LastingDirectory {
  std::string path;     // as the server sees it: absolute, without symbolic links
  std::string content;  // the directory with its initial content
};

// Makes the directory `ours` with the owner, mode and time of `machines`; an existing one gets
// them, too.  If `machines` does not exist, `ours` belongs to root, with mode 0755.
Outcome make_directory_as(const std::string& machines, const std::string& ours);

// Makes an empty directory for all users (01777) at `path` in an overlay's `upper`; it covers the
// machine's.
Outcome cover_directory(const std::string& path, const std::string& upper);

// Whether a new base replaces an existing one.
enum class Before { kReplaced, kStays };
// Whether the initial content is copied or moved.  Moving needs the file system of `base`, and the
// content must have no other use.
enum class Content { kCopied, kMoved };
Outcome make_base(const std::vector<LastingDirectory>& directories, const std::string& base,
                  Before before, Content content = Content::kCopied);
// The lasting directories of a base, as the server sees them, sorted.  kNotFound: there is no base.
Result<std::vector<std::string>> directories_of_base(const std::string& base);

// A digest of names, kinds, owners, modes and sizes below `path`, optionally with modification
// times; 0 only if it cannot be read.
enum class Times { kLeftOut, kCounted };
std::uint64_t digest_of_tree(const std::string& path, Times times);
// A digest without times, but with all bytes.
std::uint64_t digest_of_content(const std::string& path);

}  // namespace crane::checkpoint
