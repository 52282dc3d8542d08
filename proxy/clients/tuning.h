// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds of the proxy and how they relate; those of one connection: proxy/replica/clients/tuning.h.

#include <cstdint>

#include "proxy/replica/deadline.h"

namespace crane::proxy {

using replica::kNever;

// Clients taken from one listener per event, so that a flood of connects leaves room for requests.
inline constexpr int kAcceptsPerEvent = 64;
// How often a listener whose server has a full backlog is looked at, while clients wait for it.
inline constexpr std::int64_t kRoomLookNs = 5'000'000;
// Output that clients have not taken, over all of them; beyond it the largest queue is reset.
inline constexpr std::uint64_t kQueuedBytesMax = 1ULL << 30;
// Before the lead goes to another host: what clients have sent, and what their kernels send at
// once, comes in and is committed.  Their answers wait for the next leader.
inline constexpr std::int64_t kLetInNs = 3'000'000;

}  // namespace crane::proxy
