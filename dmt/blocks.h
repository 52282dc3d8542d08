// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks of kBlockBytes for unread bytes: input of connections, datagrams.
//
// Threads / Processes: everything here REQUIRES the turn.

#include <cstddef>
#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

// Whether `bytes` more fit if at most `most` blocks may be in use.
inline bool fits(const Layout& w, std::size_t bytes, std::uint32_t most = kBlocksMax - 1) noexcept {
  const std::size_t needed = bytes / kBlockBytes + 2;  // the first and last block may be partial
  return w.scheduler.blocks_in_use.load(std::memory_order_relaxed) + needed <= most;
}

// Returns a block without a successor, never 0.  If all blocks are used the replica is fenced, so
// callers check first (fits).
std::uint32_t allocate_block(Layout& w) noexcept;
void free_block(Layout& w, std::uint32_t block) noexcept;

inline std::byte* block_bytes(Layout& w, std::uint32_t block) noexcept {
  return w.blocks + static_cast<std::size_t>(block) * kBlockBytes;
}
inline const std::byte* block_bytes(const Layout& w, std::uint32_t block) noexcept {
  return w.blocks + static_cast<std::size_t>(block) * kBlockBytes;
}

}  // namespace crane::dmt
