// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layout of the shared-memory fabric's files; no behaviour.
//
//   <dir>/r<i>/lock              held by the live process of replica i
//   <dir>/r<i>/control           Control: identity, doorbell flag, cells, one mailbox per peer
//   <dir>/r<i>/log               the log memory; written by replica i only, mapped read-only by
//                                peers
//   <dir>/r<i>/bell              FIFO: one byte wakes replica i
//   <dir>/r<i>/life              robust mutexes, held while the process runs (shm_life.h)
//   <dir>/r<i>/write_queue-<key> one per grant: WriteQueue; written by the peer that holds the key
//
// Each field's comment names its only writer.  Fields of different writers are on different cache
// lines.  A change of layout changes kShmLayoutVersion.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "consensus/fabric/tmpfs_fabric.h"

namespace crane::consensus::shm {

inline constexpr std::uint64_t kControlMagic = 0x316c7274436e7243;  // "CrnCtrl1"
inline constexpr std::uint64_t kWriteQueueMagic = 0x31646e4c6e726343;
inline constexpr std::uint32_t kShmLayoutVersion = 2;
inline constexpr std::uint64_t kMailboxSlots = 64;

template <typename T>
inline constexpr bool kShmSafe = std::is_standard_layout_v<T>;

struct Request {
  std::uint32_t size;
  std::uint32_t reserved;
  std::byte body[kRequestBytesMax];
};

// Single producer (one peer), single consumer (the owner).  Happens-before: the producer fills the
// slot before its release of `tail`; the consumer releases `head` before the slot is reused.
struct Mailbox {
  alignas(kLine) std::atomic<std::uint64_t> tail;  // peer
  alignas(kLine) std::atomic<std::uint64_t> head;  // owner
  alignas(kLine) Request slots[kMailboxSlots];     // peer
};

struct Control {
  ControlHead head;
  std::uint64_t write_queue_bytes;         // owner, before it publishes the file
  std::atomic<std::uint64_t> incarnation;  // owner; random, not 0
  std::atomic<std::uint64_t> pid_start;    // owner; with pid: identifies one process for ever
  std::atomic<std::uint32_t> pid;          // owner
  std::atomic<std::uint64_t> next_key;     // owner
  alignas(kLine) std::atomic<std::uint32_t> sleeping;                 // owner sets, peers clear
  alignas(kLine) std::atomic<std::uint64_t> hello[kReplicasMax + 1];  // [j]: peer j's incarnation
  alignas(kLine) std::atomic<std::uint64_t> live_key[kReplicasMax + 1];  // owner; [j]: j's grant
  Cell cells[kCellsMax];                                                 // owner
  // Mailbox[replicas] follows at mailbox_offset().
};

inline constexpr std::size_t mailbox_offset() noexcept {
  return (sizeof(Control) + 4095) / 4096 * 4096;
}
inline constexpr std::size_t control_bytes(std::size_t replicas) noexcept {
  return mailbox_offset() + replicas * sizeof(Mailbox);
}

// A grant.  The writer appends records {offset, size, bytes} at `tail`; the owner copies them into
// its log memory and advances `drained`.  Positions are absolute; (position - base) % capacity is
// the place in the buffer.  The writer moves `base` only when the queue is empty, and before it
// publishes the next `tail`.  So the owner never sees a base that does not match the records it
// reads.
struct WriteQueue {
  std::uint64_t magic;
  std::uint64_t key;                  // owner, at creation
  std::uint64_t capacity;             // owner, at creation
  std::atomic<std::uint64_t> state;   // owner: 0 spare, the key while live, then kRevoked
  std::atomic<std::uint32_t> writer;  // owner, at the grant: the granted peer
  alignas(kLine) std::atomic<std::uint64_t> tail;     // writer
  std::atomic<std::uint64_t> base;                    // writer
  alignas(kLine) std::atomic<std::uint64_t> drained;  // owner
};
inline constexpr std::uint64_t kRevoked = ~std::uint64_t{0};
inline constexpr std::size_t kWriteQueueData = 4096;  // records start here

struct Record {
  std::uint64_t offset;  // in the log memory; kSkip: the rest of this lap is empty
  std::uint64_t size;
};
inline constexpr std::uint64_t kSkip = ~std::uint64_t{0};
inline constexpr std::uint64_t record_bytes(std::uint64_t size) noexcept {
  return sizeof(Record) + (size + 15) / 16 * 16;
}

static_assert(kShmSafe<Control> && kShmSafe<WriteQueue> && kShmSafe<Mailbox> && kShmSafe<Cell>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(Request) == 248 && sizeof(Record) == 16);
static_assert(sizeof(WriteQueue) <= kWriteQueueData && offsetof(Control, write_queue_bytes) == 32);
static_assert(offsetof(WriteQueue, tail) % kLine == 0 &&
              offsetof(WriteQueue, drained) % kLine == 0);

}  // namespace crane::consensus::shm
