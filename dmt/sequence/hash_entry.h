// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a HASH entry's body begins; what follows is for nodes (proxy/record/verification.h).
//
// Threads / Processes: plain values.

#include <cstdint>

namespace crane {

struct HashEntryHead {
  // At this entry's admission the hash of the schedule restarts, so that replicas which differ
  // can be compared in what they do from here on.
  static constexpr std::uint8_t kRestarts = 8;

  std::uint32_t format;
  std::uint8_t flags;
  std::uint8_t unused[3];
};
static_assert(sizeof(HashEntryHead) == 8);

}  // namespace crane
