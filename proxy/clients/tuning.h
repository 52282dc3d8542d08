// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds of the proxy and how they relate.

#include <cstddef>
#include <cstdint>

#include "proxy/replica/deadline.h"

namespace crane::proxy {

using replica::kNever;

// Clients taken from one listener per event, so that a flood of connects leaves room for requests.
inline constexpr int kAcceptsPerEvent = 64;
// How often a listener whose server has a full backlog is looked at, while clients wait for it.
inline constexpr std::int64_t kRoomLookNs = 5'000'000;
// One iteration reads at most this much from all clients together; the rest is read in the next.
inline constexpr std::uint64_t kBatchBytes = 4U << 20;
// Output that clients have not taken, over all of them; beyond it the largest queue is reset.
inline constexpr std::uint64_t kQueuedBytesMax = 1ULL << 30;
// A follower that keeps so much more output of a connection asks what the leader has put into the
// socket.
inline constexpr std::size_t kTailLook = 16 * 1024;
// Before the lead goes to another host: what clients have sent, and what their kernels send at
// once, comes in and is committed.  Their answers wait for the next leader.
inline constexpr std::int64_t kLetInNs = 3'000'000;
// WINDOW is due when more than S / kWindowUsed is out and S / kWindowStep was drained (D15).
inline constexpr std::uint64_t kWindowUsed = 2;
inline constexpr std::uint64_t kWindowStep = 4;

static_assert(kWindowStep >= kWindowUsed, "a blocked writer must be woken before all is drained");

}  // namespace crane::proxy
