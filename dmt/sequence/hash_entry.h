// SPDX-License-Identifier: Apache-2.0
#pragma once
// The head of a HASH entry's body; the rest is for nodes (proxy/record/verification.h).
//
// Threads / Processes: plain values.

#include <cstdint>

namespace crane {

struct HashEntryHead {
  // The schedule hash restarts at the admission of this entry, so that replicas that differed can
  // be compared from there on.
  static constexpr std::uint8_t kRestarts = 8;

  std::uint32_t format;
  std::uint8_t flags;
  std::uint8_t unused[3];
};
static_assert(sizeof(HashEntryHead) == 8);

}  // namespace crane
