// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that processes share: finds the mapping of an address, so that a mutex, condition or futex
// has one name wherever each process has mapped it (DESIGN D2).
//
// An identity is that of a file (its virtual inode number) or of a segment (System V), or a name
// that was assigned when anonymous memory was mapped. Children of fork inherit the table with the
// memory. Names of objects affect no decision (queues are first in, first out), so they may differ
// between replicas.
//
// Threads: add_mapping REQUIRES the turn; the others any: an entry does not change while its memory
// is in use.

#include <cstddef>
#include <cstdint>

namespace crane::dmt {
struct Layout;
}

namespace crane {

// The size of the table of one process; the kernel's own limit is 65530.
inline constexpr std::size_t kMappingsMax = 4096;
// Whether there is room for the two entries that a call may add. If not, the call fails (ENOMEM)
// and changes nothing.
bool has_room_for_mappings() noexcept;

// `offset` is the offset of `address` in the mapped object. REQUIRES has_room_for_mappings().
void add_mapping(dmt::Layout& w, const void* address, std::size_t size, std::uint64_t identity,
                 std::uint64_t offset) noexcept;
// The range no longer maps that memory.
void remove_mapping(const void* address, std::size_t size) noexcept;
// Records a move or resize (mremap). REQUIRES the turn.
void move_mapping(dmt::Layout& w, const void* from, std::size_t old_size, const void* to,
                  std::size_t new_size) noexcept;
// True when part of the range is in the table.
bool touches_mapping(const void* address, std::size_t size) noexcept;

// True when a known mapping would be left on both sides of the range.
bool cuts_mapping(const void* address, std::size_t size) noexcept;

// Returns the name of a process-shared object; in memory that is not known to be shared, the name
// of a private object.
std::uint64_t name_of_shared(const volatile void* address) noexcept;

std::uint64_t identity_of_segment(int id) noexcept;

}  // namespace crane
