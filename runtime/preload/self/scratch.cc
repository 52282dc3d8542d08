// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/self/scratch.h"

#include "dmt/base/assert.h"
#include "runtime/preload/ground/pages.h"
#include "runtime/preload/self/thread.h"

namespace crane {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t rounded(std::size_t bytes) noexcept {
  return (bytes + kAlignment - 1) & ~(kAlignment - 1);
}

void release_from(std::uint32_t piece) noexcept {
  self.scratch.pieces = piece;
  self.scratch.used = self.scratch.piece[piece].begin;
}

}  // namespace

ScratchMemory::ScratchMemory(std::size_t bytes) noexcept {
  ScratchState& s = self.scratch;
  std::byte* const area = signal_stack::scratch_area();
  const std::size_t size = rounded(bytes);
  const bool fits = area != nullptr && s.pieces < ScratchState::kPiecesMax &&
                    size <= signal_stack::kScratchBytes - s.used;
  if (fits) {
    piece_ = s.pieces++;
    s.piece[piece_] = {signal_stack::program_pointer(), s.used};
    data_ = area + s.used;
    s.used += size;
    return;
  }
  page_bytes_ = size;
  data_ = map_pages(size);
  CRANE_ASSERT(data_ != nullptr);
}

ScratchMemory::~ScratchMemory() {
  if (page_bytes_ != 0) {
    raw_syscall(SYS_munmap, data_, page_bytes_);
  } else {
    CRANE_ASSERT(piece_ < self.scratch.pieces);  // SCRATCH-1
    release_from(piece_);
  }
}

void ScratchMemory::forget_left_behind(std::uintptr_t target) noexcept {
  const ScratchState& s = self.scratch;
  while (s.pieces > 0 && signal_stack::is_left_behind(s.piece[s.pieces - 1].program, target)) {
    release_from(s.pieces - 1);
  }
}

}  // namespace crane
