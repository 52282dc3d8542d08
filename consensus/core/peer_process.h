// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica's observations of a peer's process on the same host.
//
// Threads: a plain value.

#include <cstdint>

namespace crane::consensus {

enum class PeerProcess : std::uint8_t {
  kUnknown,  // no observation explains a heartbeat that does not move
  kStarved,  // it is runnable without a processor, or waits for a disk: not the peer's fault
  kStopped,  // by a signal: it does nothing until it is continued
};

}  // namespace crane::consensus
