// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks of a tar archive (POSIX.1-2001, pax), as archive.h writes and reads them.
//
// A member is a pax header, for values that do not fit the plain header, and a plain header.
// Extended attributes are SCHILY.xattr.NAME, as in GNU tar and libarchive.  The first of several
// names of a file has a number in a `comment`, which all readers ignore.
//
// Threads: pure functions.

#include <optional>
#include <string>

#include "checkpoint/tree.h"

namespace crane::checkpoint::tar {

inline constexpr std::size_t kBlock = 512;
// The zeros that follow `size` bytes up to a whole block.
constexpr std::size_t padding_of(std::uint64_t size) { return (kBlock - size % kBlock) % kBlock; }
inline constexpr std::size_t kPaxMax = kAttributesMax + (1U << 16);

// A member of the archive, without its bytes.
struct Member {
  std::string path;  // relative, without a final slash
  Inode inode;       // `link`: number of a first name
  bool is_link = false;
  std::string first;  // for a link: the path of the first name
};

// Both headers, padded to whole blocks.
std::string encode(const Member& member);

// A decoded block.  `kind`: as in the block; 'x' is a pax header. nullopt: it is no header.
struct Header {
  char kind = 0;
  std::uint64_t size = 0;  // number of bytes that follow
  Member member;
};
std::optional<Header> decode(const char* block);
// Applies the records of a pax header, which override the plain header; false: they are invalid.
bool apply(const std::string& records, Header& header);

}  // namespace crane::checkpoint::tar
