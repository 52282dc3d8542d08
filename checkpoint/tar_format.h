// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks of a tar archive (POSIX.1-2001, pax), as archive.h writes and reads them.
//
// A member is a pax header, which says what the plain header has no room for, and a plain header.
// Extended attributes are SCHILY.xattr.NAME, as GNU tar and libarchive have them; a first name of
// several is numbered in a `comment`, which all readers pass over.
//
// Threads: pure functions.

#include <optional>
#include <string>

#include "checkpoint/tree.h"

namespace crane::checkpoint::tar {

inline constexpr std::size_t kBlock = 512;
inline constexpr std::size_t kPaxMax = kAttributesMax + (1U << 16);

// A member of the archive, without its bytes.
struct Member {
  std::string path;  // relative, without a slash at its end
  Inode inode;       // link: number of a first name
  bool is_link = false;
  std::string first;  // of a link: the path of the first name
};

// Both headers, padded to whole blocks.
std::string encode(const Member& member);

// One block.  `kind`: as the block says, a pax header is 'x'.  nullopt: it is no header.
struct Header {
  char kind = 0;
  std::uint64_t size = 0;  // of the bytes that follow
  Member member;
};
std::optional<Header> decode(const char* block);
// Puts what a pax header's records say over what the plain header does; false: they are none.
bool apply(const std::string& records, Header& header);

}  // namespace crane::checkpoint::tar
