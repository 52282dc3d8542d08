// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a replica sees of another one's process on the same host.
//
// Threads: a plain value.

#include <cstdint>

namespace crane::consensus {

enum class PeerProcess : std::uint8_t {
  kUnknown,  // nothing that explains a heartbeat that does not move
  kStarved,  // it wants to run and has no processor, or waits for a disk: that says nothing of it
  kStopped,  // by a signal: it does nothing until it is continued
};

}  // namespace crane::consensus
