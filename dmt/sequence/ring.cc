// SPDX-License-Identifier: Apache-2.0
#include "dmt/sequence/ring.h"

#include <cstring>

#include "dmt/base/assert.h"

namespace crane {
namespace {
struct RecordHeader {
  std::uint32_t size;
  std::uint32_t reserved;
};
static_assert(sizeof(RecordHeader) == Ring::kRecordHeader);

// When all records are read, the ring starts at its beginning again beyond this offset.
constexpr std::uint64_t kRewindBytes = 2ull << 20;

std::uint64_t footprint(std::uint32_t bytes) noexcept {
  return (Ring::kRecordHeader + static_cast<std::uint64_t>(bytes) + 7) & ~7ull;
}
}  // namespace

Ring::Ring(RingLayout& layout, std::byte* base) noexcept
    : ring_(layout), data_(base + layout.data_offset) {
  CRANE_ASSERT(layout.capacity > 0 && (layout.capacity & (layout.capacity - 1)) == 0);
}

std::span<std::byte> Ring::reserve(std::uint32_t bytes) noexcept {
  const std::uint64_t write = ring_.write_position.load(std::memory_order_relaxed);
  const std::uint64_t read = ring_.read_position.load(std::memory_order_acquire);
  CRANE_ASSERT(write >= read && write - read <= ring_.capacity);  // SEQ-S1
  const std::uint64_t need = footprint(bytes);
  const std::uint64_t offset = write & (ring_.capacity - 1);
  const std::uint64_t to_end = ring_.capacity - offset;
  // Recently used memory is still in the processor's cache.
  const bool rewinds = write == read && offset >= kRewindBytes && need <= kRewindBytes;
  const std::uint64_t skip = to_end < need || rewinds ? to_end : 0;
  if (write - read + skip + need > ring_.capacity) return {};
  if (skip > 0) {
    const RecordHeader filler{kFiller, 0};
    std::memcpy(data_ + offset, &filler, sizeof filler);
    ring_.write_position.store(write + skip, std::memory_order_release);  // SEQ-S2
    return {data_ + kRecordHeader, bytes};
  }
  return {data_ + offset + kRecordHeader, bytes};
}

void Ring::commit(std::uint32_t bytes) noexcept {
  const std::uint64_t write = ring_.write_position.load(std::memory_order_relaxed);
  const std::uint64_t offset = write & (ring_.capacity - 1);
  const RecordHeader header{bytes, 0};
  std::memcpy(data_ + offset, &header, sizeof header);
  ring_.write_position.store(write + footprint(bytes), std::memory_order_release);  // SEQ-S2
}

std::uint64_t Ring::writable() const noexcept {
  const std::uint64_t write = ring_.write_position.load(std::memory_order_relaxed);
  const std::uint64_t read = ring_.read_position.load(std::memory_order_acquire);
  const std::uint64_t free = ring_.capacity - (write - read);
  const std::uint64_t to_end = ring_.capacity - (write & (ring_.capacity - 1));
  const std::uint64_t head = free < to_end ? free : to_end;
  const std::uint64_t wrapped = free > to_end ? free - to_end : 0;
  const std::uint64_t best = head > wrapped ? head : wrapped;
  return best > kRecordHeader ? best - kRecordHeader : 0;
}

std::span<const std::byte> Ring::record_at(std::uint64_t& position) const noexcept {
  while (position != ring_.write_position.load(std::memory_order_acquire)) {
    const std::uint64_t offset = position & (ring_.capacity - 1);
    RecordHeader header;
    std::memcpy(&header, data_ + offset, sizeof header);
    if (header.size != kFiller) {
      CRANE_ASSERT(offset + footprint(header.size) <= ring_.capacity);
      return {data_ + offset + kRecordHeader, header.size};
    }
    position += ring_.capacity - offset;
  }
  return {};
}

std::span<const std::byte> Ring::front() noexcept {
  const std::uint64_t read = read_position();
  std::uint64_t position = read;
  const std::span<const std::byte> record = record_at(position);
  if (position != read) ring_.read_position.store(position, std::memory_order_release);
  return record;
}

void Ring::pop() noexcept {
  const std::uint64_t read = ring_.read_position.load(std::memory_order_relaxed);
  RecordHeader header;
  std::memcpy(&header, data_ + (read & (ring_.capacity - 1)), sizeof header);
  ring_.read_position.store(read + footprint(header.size), std::memory_order_release);
}

std::span<const std::byte> Ring::next(std::uint64_t& position) const noexcept {
  const std::span<const std::byte> record = record_at(position);
  if (record.data() != nullptr) position += footprint(static_cast<std::uint32_t>(record.size()));
  return record;
}

void Ring::release(std::uint64_t position) noexcept {
  CRANE_ASSERT(position >= read_position());  // SEQ-S3
  ring_.read_position.store(position, std::memory_order_release);
}

bool Ring::empty() const noexcept {
  return ring_.read_position.load(std::memory_order_seq_cst) ==
         ring_.write_position.load(std::memory_order_seq_cst);
}

}  // namespace crane
