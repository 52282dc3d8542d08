// SPDX-License-Identifier: Apache-2.0
#pragma once
// The base of a group: the content with which the server's lasting directories (--data) begin, as a
// tree that an overlay's upper directory begins as a copy of (ServerOptions::upper).
//
// A lasting directory is opaque in it: the server never sees through to the machine's directory of
// that name, which may change, and is never written.  All that the server does there is in the
// upper directory, so it is in every checkpoint without further ado.
//
// The base is made when the group begins, appears under its name when it is whole (BASE-1), and is
// never changed: a server that runs its inputs from the first one on begins as the first one did.
//
// Threads: plain functions, which may block for as long as the disk does.
// INVARIANT BASE-1  A directory of a base's name holds the whole of every lasting directory.

#include <string>
#include <vector>

#include "checkpoint/file_error.h"
#include "dmt/base/result.h"

namespace crane::checkpoint {

struct LastingDirectory {
  std::string path;     // as the server sees it: absolute, no links in it
  std::string content;  // the directory that it begins with
};

// A directory as `machines` is one: owner, mode, time; one that is there already gets them, too.
// Where `machines` is none, it is root's, 0755.
Outcome make_directory_as(const std::string& machines, const std::string& ours);

// An empty directory for all users (01777) at `path` in an overlay's `upper`: it covers the
// machine's.
Outcome cover_directory(const std::string& path, const std::string& upper);

// `before`: what becomes of one that is there already.
enum class Before { kReplaced, kStays };
// And of what the directories begin with, which may lie beside `base` and be of no use elsewhere.
enum class Content { kCopied, kMoved };
Outcome make_base(const std::vector<LastingDirectory>& directories, const std::string& base,
                  Before before, Content content = Content::kCopied);
// The lasting directories of a base, as the server sees them, sorted.  kNotFound: there is no base.
Result<std::vector<std::string>> directories_of_base(const std::string& base);

// A digest of names, kinds, owners, modes and sizes below `path`, with the times of modification if
// asked; 0 only if it cannot be read.
enum class Times { kLeftOut, kCounted };
std::uint64_t digest_of_tree(const std::string& path, Times times);
// And of all bytes.
std::uint64_t digest_of_content(const std::string& path);

}  // namespace crane::checkpoint
