// SPDX-License-Identifier: Apache-2.0
#pragma once
// The entries of a directory in one order: by name (rule 20).  The kernel's order is that of
// creation, or of a hash that each file system seeds again.
//
// Threads: one at a time for one listing, and for one descriptor.  Nothing here touches errno.

#include <dirent.h>

#include <cstddef>
#include <cstdint>

#include "dmt/layout.h"
#include "runtime/preload/ground/types.h"

namespace crane {

struct Listing {
  bool complete;
  std::uint32_t next, count;
  std::byte* entries;    // as getdents64 gave them, in a mapping of `capacity` bytes
  std::size_t capacity;  // the first `used` hold entries, the order's offsets lie behind them
  std::size_t used;
  std::uint32_t* order;  // offsets of the entries, by name
};

// All that the directory holds from the descriptor's position on; 0 or a negative error number.
int read_listing(Listing& l, int fd) noexcept;
void drop_listing(Listing& l) noexcept;

// The next entry, null at the end.  `w`, when the caller has the turn: its number is the one that
// stat gives, its type the file's.
struct dirent64* next_of(Listing& l, int fd, dmt::Layout* w) noexcept;

// getdents64(2) in this order.  What one call leaves for the next is kept by descriptor, until the
// end or until the directory is read from its beginning again.
ssize_t read_directory(int fd, void* out, std::size_t size, dmt::Layout* w) noexcept;

}  // namespace crane
