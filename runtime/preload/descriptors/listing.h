// SPDX-License-Identifier: Apache-2.0
#pragma once
// The entries of a directory in a fixed order: by name (rule 20). The kernel lists them in the
// order of creation, or by a hash whose seed each file system chooses.
//
// Threads: one at a time per listing and per descriptor. These functions do not touch errno.

#include <dirent.h>

#include <cstddef>
#include <cstdint>

#include "dmt/layout.h"
#include "runtime/preload/ground/types.h"

namespace crane {

struct Listing {
  bool complete;
  std::uint32_t next, count;
  std::byte* entries;    // results of getdents64, in a mapping of `capacity` bytes
  std::size_t capacity;  // `used` bytes of entries, then `order`
  std::size_t used;
  std::uint32_t* order;  // offsets of the entries, by name
};

// Reads all entries from the descriptor's position on; 0 or a negative error number.
int read_listing(Listing& l, int fd) noexcept;
void drop_listing(Listing& l) noexcept;

// Returns the next entry, null at the end. `w`: given when the caller has the turn; the entry then
// has the number that stat returns and the file's type.
struct dirent64* next_of(Listing& l, int fd, dmt::Layout* w) noexcept;

// getdents64(2) in this order. Entries that one call leaves for the next are kept per descriptor,
// until the end of the directory or until it is read from its beginning again.
ssize_t read_directory(int fd, void* out, std::size_t size, dmt::Layout* w) noexcept;

}  // namespace crane
