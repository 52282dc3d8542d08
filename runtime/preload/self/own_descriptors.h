// SPDX-License-Identifier: Apache-2.0
#pragma once
// The descriptors of libcrane.so itself: the segment, the node's doorbell, messages, the replica's
// directory, a spare one and, if configured, branch counters. They are at the end of the allowed
// range, at the same place on every replica (D13). The application can neither see nor close them.
//
// Threads: any, after open_own_descriptors().

#include <cstdint>

namespace crane {

inline constexpr int kOwnDescriptors = 5;        // segment, doorbell, messages, directory, spare
inline constexpr int kCounterDescriptors = 200;  // after these: branch counters, one per thread

// Opens the descriptors, or takes over those of the program before exec, and maps the segment. Ends
// the process with a message when something is missing. REQUIRES read_own_variables().
void open_own_descriptors() noexcept;

// Returns 0 before the segment is mapped.
int own_descriptor_base() noexcept;
int own_descriptor_end() noexcept;
inline bool is_own_descriptor(int fd) noexcept {
  const int base = own_descriptor_base();
  return base > 0 && fd >= base && fd < own_descriptor_end();
}

// Wakes the node.
void ring_doorbell() noexcept;
// Sends dmt::CheckIn to the node.
void check_in(std::uint16_t process) noexcept;

}  // namespace crane
