// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks of kBlockBytes for bytes that wait to be read: input of connections, datagrams.
//
// Threads / Processes: everything here REQUIRES the turn.

#include <cstddef>
#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

// Whether so many bytes more fit, when no more than `most` blocks shall be in use.
inline bool fits(const Layout& w, std::size_t bytes, std::uint32_t most = kBlocksMax - 1) noexcept {
  const std::size_t needed = bytes / kBlockBytes + 2;  // at both ends a part of one
  return w.scheduler.blocks_in_use.load(std::memory_order_relaxed) + needed <= most;
}

// A block that nothing follows.  Never 0: the replica is fenced when all are used, so that callers
// ask first (fits).
std::uint32_t allocate_block(Layout& w) noexcept;
void free_block(Layout& w, std::uint32_t block) noexcept;

inline std::byte* block_bytes(Layout& w, std::uint32_t block) noexcept {
  return w.blocks + static_cast<std::size_t>(block) * kBlockBytes;
}
inline const std::byte* block_bytes(const Layout& w, std::uint32_t block) noexcept {
  return w.blocks + static_cast<std::size_t>(block) * kBlockBytes;
}

}  // namespace crane::dmt
