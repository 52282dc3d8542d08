// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that processes share: which mapping an address belongs to, so that a mutex, condition or
// futex in it has one name wherever each process has mapped it (DESIGN D2).
//
// An identity is the file's (its virtual inode number), the segment's (System V), or a name that
// was given out when anonymous memory was mapped; children of fork inherit the table with the
// memory.  Names of objects decide nothing (queues are first in, first out), so that they need not
// be equal on two replicas.
//
// Threads: add_mapping REQUIRES the turn; the others any: an entry does not change while its memory
// is in use.

#include <cstddef>
#include <cstdint>

namespace crane::dmt {
struct Layout;
}

namespace crane {

// As many as the table holds of one process; the kernel's own limit is 65530.
inline constexpr std::size_t kMappingsMax = 4096;
// Room for two more: what a call may add.  Without it the call fails (ENOMEM), nothing done.
bool has_room_for_mappings() noexcept;

// `offset` is that of `address` within what is mapped.  REQUIRES has_room_for_mappings().
void add_mapping(dmt::Layout& w, const void* address, std::size_t size, std::uint64_t identity,
                 std::uint64_t offset) noexcept;
// The range is not that memory any more.
void remove_mapping(const void* address, std::size_t size) noexcept;
// Moved or resized (mremap).  REQUIRES the turn.
void move_mapping(dmt::Layout& w, const void* from, std::size_t old_size, const void* to,
                  std::size_t new_size) noexcept;
// True when part of the range is known.
bool touches_mapping(const void* address, std::size_t size) noexcept;

// True when a known mapping would be left on both sides of the range.
bool cuts_mapping(const void* address, std::size_t size) noexcept;

// The name of a process-shared object; in memory that is not known to be shared, that of a private
// one.
std::uint64_t name_of_shared(const volatile void* address) noexcept;

std::uint64_t identity_of_segment(int id) noexcept;

}  // namespace crane
