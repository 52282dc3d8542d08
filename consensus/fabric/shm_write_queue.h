// SPDX-License-Identifier: Apache-2.0
#pragma once
// A grant of the shared-memory fabric: the segment one peer may write, and its two ends.
//
// A processor has no memory keys: who has mapped a page can write it for ever.  So no process ever
// maps a replica's log memory for writing but the replica itself.  A grant is a fresh segment of
// its own, a queue of writes: the peer appends (offset, size, bytes) and publishes by advancing
// `tail`; the owner copies what is published into its log memory before it looks at that memory,
// and before it takes the grant back.  The peer's write is complete as soon as it is published,
// with no help of the owner's processor, and survives the owner's death, as the segment does.
//
//   INVARIANT SHM-L1  The owner reads only what `tail` covers; `tail` covers only whole records.
//                 So a writer stopped or killed inside a copy has written nothing, and nothing is
//                 torn.
//   INVARIANT SHM-L2  revoke: store `state`, full fence, then take in up to `tail`.  A write is:
//                 publish `tail`, full fence, then re-read `state`, which completes it only if it
//                 still is the key.  In every interleaving the owner sees the record or the writer
//                 the revoke (FABRIC-F3), and after the revoke no process reads the segment again
//                 (FABRIC-F2): it is unlinked and unmapped, and a stopped writer that continues
//                 scribbles on pages that only it still has.
//   INVARIANT SHM-L3  tail - drained <= capacity: the writer never overwrites what is not taken in:
//                 without room the write fails, as do all after it (FABRIC-F5).
//   INVARIANT SHM-L4  A segment serves one grant; its file name, its header and the live_key of the
//                 owner's control segment agree on a key that is never given twice (FABRIC-F6).
//
// Cost: one copy more, in the follower, which is not on the path to commit.  In return a revoke
// copies only what has not been taken in, not the log; entries of long ago that a new leader may
// still have to send to a slow peer are untouched; and there is no torn or stale byte in anybody's
// log. When it is empty the queue restarts at its beginning, so that it stays within a cache.
//
// Threads: each end belongs to one thread; the two ends are two processes.

#include <cstdint>
#include <span>
#include <string>

#include "consensus/fabric/fabric.h"
#include "consensus/fabric/shm_layout.h"
#include "consensus/fabric/shm_region.h"

namespace crane::consensus::shm {

std::string write_queue_path(const std::string& replica_dir, Key key);

// The owner's end.
class WriteQueueOwner {
 public:
  // A spare: created, not granted.
  static Result<WriteQueueOwner> create(const std::string& replica_dir, Key key,
                                        std::uint64_t capacity) noexcept;
  // A grant of an earlier incarnation.
  static Result<WriteQueueOwner> open(const std::string& replica_dir, Key key) noexcept;

  Key key() const noexcept { return Key{header()->key}; }
  bool live() const noexcept {
    return header()->state.load(std::memory_order_relaxed) == value(key());
  }
  void grant(ReplicaId writer) noexcept;
  bool pending() const noexcept {
    return header()->tail.load(std::memory_order_acquire) !=
           header()->drained.load(std::memory_order_relaxed);
  }
  // Copies what is published into `log`.  False when the writer broke the format (a bug or a
  // foreign hand): the grant is then of no more use.
  bool take_in(std::span<std::byte> log) noexcept;
  // SHM-L2; afterwards the segment is never read again.
  bool revoke(std::span<std::byte> log) noexcept;

 private:
  WriteQueue* header() const noexcept { return region_.as<WriteQueue>(); }
  Region region_;
};

// The peer's end.
class WriteQueueWriter {
 public:
  // kRevoked when the key is not (any more) live for `self`.
  static Result<WriteQueueWriter> open(const std::string& replica_dir, Key key,
                                       ReplicaId self) noexcept;
  Key key() const noexcept { return key_; }
  bool live() const noexcept {
    return header()->state.load(std::memory_order_acquire) == value(key_);
  }
  // Appends one record (L1-L3).  False: revoked, or no room.
  bool write(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;
  // Allocates the next so many bytes of the queue (ROOM-1).  False: there is no room for them.
  bool back_ahead(std::uint64_t bytes) noexcept;
  // Lays what is written and not taken in over `out`, a copy of the log memory from `offset` on,
  // made after `drained` was read (FABRIC-F12).
  std::uint64_t drained() const noexcept {
    return header()->drained.load(std::memory_order_acquire);
  }
  void overlay(std::uint64_t drained, std::uint64_t offset,
               std::span<std::byte> out) const noexcept;

  // The two halves of write(), for tests that stop between them.
  bool test_only_copy(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;
  bool test_only_publish() noexcept { return publish(); }
  std::byte* test_only_data() const noexcept { return data(); }

 private:
  bool copy(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;
  bool publish() noexcept;
  bool room_for(std::uint64_t need) noexcept;
  WriteQueue* header() const noexcept { return region_.as<WriteQueue>(); }
  std::byte* data() const noexcept { return region_.data() + kWriteQueueData; }

  Region region_;
  Key key_{};
  std::uint64_t capacity_ = 0;
  std::uint64_t tail_ = 0;  // own copy, ahead of the published one between copy and publish
  std::uint64_t base_ = 0;
  std::uint64_t drained_ = 0;  // last seen
};

}  // namespace crane::consensus::shm
