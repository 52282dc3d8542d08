// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds of the proxy and their relations; those of one connection are in
// proxy/replica/clients/tuning.h.

#include <cstdint>

#include "proxy/replica/deadline.h"

namespace crane::proxy {

using replica::kNever;

// Clients accepted from one listener per event, so that a flood of connects leaves time for
// requests.
inline constexpr int kAcceptsPerEvent = 64;
// How often a listener is checked whose server has a full backlog while clients wait.
inline constexpr std::int64_t kRoomLookNs = 5'000'000;
// Output that all clients together have not taken; beyond it the client with the largest queue is
// reset.
inline constexpr std::uint64_t kQueuedBytesMax = 1ULL << 30;
// Before leadership goes to another host: the time in which input that clients have sent, or that
// their kernels send at once, arrives and is committed.  The answers wait for the next leader.
inline constexpr std::int64_t kInputDrainNs = 3'000'000;

}  // namespace crane::proxy
