// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds for what is read from clients and kept for them.

#include <cstddef>
#include <cstdint>

namespace crane::proxy {

// One iteration reads at most this much from all clients together; the rest is read in the next.
inline constexpr std::uint64_t kBatchBytes = 4U << 20;
// When a follower keeps this much more output of a connection, it looks up how much of it the
// leader has put into the socket.
inline constexpr std::size_t kTailLook = 16 * 1024;
// WINDOW is due when more than S / kWindowUsed is used and S / kWindowStep was drained (D15).
inline constexpr std::uint64_t kWindowUsed = 2;
inline constexpr std::uint64_t kWindowStep = 4;

static_assert(kWindowStep >= kWindowUsed, "a blocked writer must be woken before all is drained");

}  // namespace crane::proxy
