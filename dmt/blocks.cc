// SPDX-License-Identifier: Apache-2.0
#include "dmt/blocks.h"

#include "dmt/node_link.h"

namespace crane::dmt {

std::uint32_t allocate_block(Layout& w) noexcept {
  SchedulerState& s = w.scheduler;
  std::uint32_t block = s.free_block;
  if (block != 0) {
    s.free_block = w.block_next[block];
  } else {
    // Callers check for room first: the replica stops rather than lose bytes.
    if (s.blocks_used + 1 >= kBlocksMax) fence(w, "inbound buffers are exhausted");
    block = ++s.blocks_used;
  }
  w.block_next[block] = 0;
  s.blocks_in_use.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void free_block(Layout& w, std::uint32_t block) noexcept {
  w.block_next[block] = w.scheduler.free_block;
  w.scheduler.free_block = block;
  w.scheduler.blocks_in_use.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace crane::dmt
