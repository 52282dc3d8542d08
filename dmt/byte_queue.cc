// SPDX-License-Identifier: Apache-2.0
#include "dmt/byte_queue.h"

#include <algorithm>
#include <cstring>

#include "dmt/blocks.h"

namespace crane::dmt {
namespace {

void free_from(Layout& w, std::uint32_t block) noexcept {
  while (block != 0) {
    const std::uint32_t next = w.block_next[block];
    free_block(w, block);
    block = next;
  }
}

}  // namespace

void append(Layout& w, ByteQueue& q, const std::uint8_t* bytes, std::size_t n) noexcept {
  for (std::size_t done = 0; done < n;) {
    if (q.tail_block == 0 || q.tail_used == kBlockBytes) {
      const std::uint32_t block = allocate_block(w);
      (q.tail_block == 0 ? q.head_block : w.block_next[q.tail_block]) = block;
      q.tail_block = block;
      q.tail_used = 0;
    }
    const std::size_t size = std::min<std::size_t>(n - done, kBlockBytes - q.tail_used);
    std::memcpy(block_bytes(w, q.tail_block) + q.tail_used, bytes + done, size);
    q.tail_used += static_cast<std::uint32_t>(size);
    q.bytes += static_cast<std::uint32_t>(size);
    done += size;
  }
}

std::size_t take(Layout& w, ByteQueue& q, std::uint8_t* to, std::size_t n) noexcept {
  const std::size_t wanted = std::min<std::size_t>(n, q.bytes);
  for (std::size_t done = 0; done < wanted;) {
    const std::size_t size = std::min<std::size_t>(wanted - done, kBlockBytes - q.head_offset);
    std::memcpy(to + done, block_bytes(w, q.head_block) + q.head_offset, size);
    q.head_offset += static_cast<std::uint32_t>(size);
    q.bytes -= static_cast<std::uint32_t>(size);
    done += size;
    if (q.head_offset < kBlockBytes) continue;
    const std::uint32_t next = w.block_next[q.head_block];
    free_block(w, q.head_block);
    q.head_block = next;
    q.head_offset = 0;
    if (next == 0) q.tail_block = 0;
  }
  if (q.bytes == 0) cut(w, q, 0);
  return wanted;
}

void cut(Layout& w, ByteQueue& q, std::uint32_t kept) noexcept {
  if (kept == 0) {
    free_from(w, q.head_block);
    q = {};
    return;
  }
  if (q.bytes <= kept) return;
  std::uint32_t block = q.head_block;
  std::uint32_t end = q.head_offset + kept;
  for (; end > kBlockBytes; end -= kBlockBytes) block = w.block_next[block];
  free_from(w, w.block_next[block]);
  w.block_next[block] = 0;
  q.tail_block = block;
  q.tail_used = end;
  q.bytes = kept;
}

}  // namespace crane::dmt
