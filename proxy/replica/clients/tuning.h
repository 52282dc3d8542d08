// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds of what is read from clients and kept for them.

#include <cstddef>
#include <cstdint>

namespace crane::proxy {

// One iteration reads at most this much from all clients together; the rest is read in the next.
inline constexpr std::uint64_t kBatchBytes = 4U << 20;
// A follower that keeps so much more output of a connection asks what the leader has put into the
// socket.
inline constexpr std::size_t kTailLook = 16 * 1024;
// WINDOW is due when more than S / kWindowUsed is out and S / kWindowStep was drained (D15).
inline constexpr std::uint64_t kWindowUsed = 2;
inline constexpr std::uint64_t kWindowStep = 4;

static_assert(kWindowStep >= kWindowUsed, "a blocked writer must be woken before all is drained");

}  // namespace crane::proxy
