// SPDX-License-Identifier: Apache-2.0
#pragma once
// A single-writer, single-reader ring of records in shared memory: the Paxos sequence (node ->
// server, records are SequenceHeader + body) and the output ring (server -> node, records are
// OutputHeader + bytes) are both one of these.
//
// A record is {u32 size, u32 reserved, payload, padding to 8}; one that would straddle the end is
// preceded by a filler record (size = kFiller) so that a payload is always contiguous.
//
// Processes: exactly one writer and one reader at a time.  For the Paxos sequence the reader is
// whoever holds the turn; for the output ring the writer is whoever holds the turn.
//
// INVARIANT SEQ-S1  read_position <= write_position <= read_position + capacity.
// INVARIANT SEQ-S2  A record is published by one release store of write_position, after its bytes
//               (happens-before: the reader's acquire load of write_position).
// INVARIANT SEQ-S3  `write_position` and `read_position` only grow; each has one writer.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace crane {

// Lives in the segment; `bytes` of data follow at `data_offset` from the segment's start.
struct RingLayout {
  alignas(128) std::atomic<std::uint64_t> write_position;  // writer
  alignas(128) std::atomic<std::uint64_t> read_position;   // reader
  alignas(128) std::uint64_t data_offset;                  // constant after creation
  std::uint64_t capacity;                                  // constant; a power of two
};

class Ring {
 public:
  // `base` is where the segment is mapped in this process.
  Ring(RingLayout& layout, std::byte* base) noexcept;

  // The writer's side.  reserve() gives room for a record of `bytes`, or an empty span when the
  // ring has none now; nothing is visible until commit() with at most the reserved size.
  std::span<std::byte> reserve(std::uint32_t bytes) noexcept;
  void commit(std::uint32_t bytes) noexcept;
  // Room for the largest single record that reserve() would give now.
  std::uint64_t writable() const noexcept;

  // The reader's side: the oldest record's payload, empty when there is none; pop() releases it.
  std::span<const std::byte> front() noexcept;
  void pop() noexcept;
  bool empty() const noexcept;

  // Reading ahead, from where read_position is: the payload of the record at `position`, which
  // moves behind it; empty when there is none.  Records stay until all before a position go.
  std::uint64_t read_position() const noexcept {
    return ring_.read_position.load(std::memory_order_relaxed);
  }
  std::span<const std::byte> next(std::uint64_t& position) const noexcept;
  void release(std::uint64_t position) noexcept;

  static constexpr std::uint32_t kFiller = 0xffffffff;
  static constexpr std::uint32_t kRecordHeader = 8;

 private:
  // The payload of the record at `position`, which moves behind fillers only.
  std::span<const std::byte> record_at(std::uint64_t& position) const noexcept;

  RingLayout& ring_;
  std::byte* data_;
};

}  // namespace crane
