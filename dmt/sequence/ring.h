// SPDX-License-Identifier: Apache-2.0
#pragma once
// A single-writer, single-reader ring of records in shared memory.  It serves as the Paxos sequence
// (node -> server, records are SequenceHeader + body) and as the output ring (server -> node,
// records are OutputHeader + bytes).
//
// A record is {u32 size, u32 reserved, payload, padding to 8}.  A filler record (size = kFiller)
// precedes a record that would straddle the end, so a payload is always contiguous.
//
// Processes: exactly one writer and one reader at a time.  The turn holder reads the Paxos sequence
// and writes the output ring.
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

// Is part of the segment; `bytes` of data follow at `data_offset` from the segment's start.
struct RingLayout {
  alignas(128) std::atomic<std::uint64_t> write_position;  // writer
  alignas(128) std::atomic<std::uint64_t> read_position;   // reader
  alignas(128) std::uint64_t data_offset;                  // constant after creation
  std::uint64_t capacity;                                  // constant; a power of two
};

class Ring {
 public:
  // `base` is the address of the segment in this process.
  Ring(RingLayout& layout, std::byte* base) noexcept;

  // The writer's side.  reserve() returns room for a record of `bytes`, or an empty span if the
  // ring has no room now.  The reader sees nothing until commit(), with at most the reserved size.
  std::span<std::byte> reserve(std::uint32_t bytes) noexcept;
  void commit(std::uint32_t bytes) noexcept;
  // The largest single record that reserve() would accept now, in bytes.
  std::uint64_t writable() const noexcept;

  // The reader's side: the oldest record's payload, empty if there is none; pop() releases it.
  std::span<const std::byte> front() noexcept;
  void pop() noexcept;
  bool empty() const noexcept;

  // Reads ahead, starting from read_position(): returns the payload of the record at `position` and
  // moves `position` after it; empty if there is none.  release() frees all records before a
  // position.
  std::uint64_t read_position() const noexcept {
    return ring_.read_position.load(std::memory_order_relaxed);
  }
  std::span<const std::byte> next(std::uint64_t& position) const noexcept;
  void release(std::uint64_t position) noexcept;

  static constexpr std::uint32_t kFiller = 0xffffffff;
  static constexpr std::uint32_t kRecordHeader = 8;

 private:
  // The payload of the record at `position`; moves `position` only past fillers.
  std::span<const std::byte> record_at(std::uint64_t& position) const noexcept;

  RingLayout& ring_;
  std::byte* data_;
};

}  // namespace crane
