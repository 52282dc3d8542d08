// SPDX-License-Identifier: Apache-2.0
#pragma once
// A grant of the shared-memory fabric: a segment that one peer may write, and its two ends.
//
// A processor has no memory keys: a process that has mapped a page for writing can write it for
// ever.  So only a replica itself maps its log memory for writing.  A grant is a fresh segment with
// a queue of writes.  The peer appends (offset, size, bytes) and publishes by advancing `tail`. The
// owner copies what is published into its log memory before it reads that memory, and before it
// revokes the grant.  The peer's write is complete once it is published, without work for the
// owner's processor.  It survives the owner's death, because the segment does.
//
//   INVARIANT SHM-L1  The owner reads only what `tail` covers, and `tail` covers whole records.  So
//                 a writer that is stopped or killed inside a copy has written nothing, and nothing
//                 is torn.
//   INVARIANT SHM-L2  The owner revokes like this: store `state`, full fence, then take in up to
//                 `tail`.  A writer writes like this: publish `tail`, full fence, then re-read
//                 `state`; the write completes only if `state` still is the key.  In every
//                 interleaving the owner sees the record or the writer sees the revoke (FABRIC-F3).
//                 After the revoke no process reads the segment again (FABRIC-F2): it is unlinked
//                 and unmapped, and a stopped writer that continues changes pages that only it
//                 still has.
//   INVARIANT SHM-L3  tail - drained <= capacity: the writer never overwrites records that were not
//                 taken in.  Without room the write fails, as do all later writes (FABRIC-F5).
//   INVARIANT SHM-L4  A segment serves one grant.  Its file name, its header and the live_key of
//                 the owner's control segment contain the same key, which is never reused
//                 (FABRIC-F6).
//
// Cost: one more copy, in the follower, off the path to commit.  In return a revoke copies only
// what has not been taken in, not the log; old entries that a new leader may still have to send to
// a slow peer are untouched; and no log ever contains a torn or stale byte.  An empty queue
// restarts at its beginning, so that it stays within a cache.
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
  // Creates a spare, which is not granted yet.
  static Result<WriteQueueOwner> create(const std::string& replica_dir, Key key,
                                        std::uint64_t capacity) noexcept;
  // Opens a grant of an earlier incarnation.
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
  // Copies what is published into `log`. False: the writer broke the format (a bug or an intruder);
  // the caller must drop the grant.
  bool take_in(std::span<std::byte> log) noexcept;
  // SHM-L2; the owner never reads the segment again.
  bool revoke(std::span<std::byte> log) noexcept;

 private:
  WriteQueue* header() const noexcept { return region_.as<WriteQueue>(); }
  Region region_;
};

// The peer's end.
class WriteQueueWriter {
 public:
  // kRevoked: the key is not live for `self`.
  static Result<WriteQueueWriter> open(const std::string& replica_dir, Key key,
                                       ReplicaId self) noexcept;
  Key key() const noexcept { return key_; }
  bool live() const noexcept {
    return header()->state.load(std::memory_order_acquire) == value(key_);
  }
  // Appends one record (L1-L3).  False: revoked, or no room.
  bool write(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;
  // Allocates the next `bytes` bytes of the queue (ROOM-1).  False: there is no room.
  bool back_ahead(std::uint64_t bytes) noexcept;
  // Applies the writes that were not taken in to `out`, a copy of the log memory from `offset` on.
  // The copy must have been made after `drained` was read (FABRIC-F12).
  std::uint64_t drained() const noexcept {
    return header()->drained.load(std::memory_order_acquire);
  }
  void overlay(std::uint64_t drained, std::uint64_t offset,
               std::span<std::byte> out) const noexcept;

  // The two halves of write(), for tests that stop between them.
  bool test_only_copy(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;
  bool test_only_publish() noexcept { return publish(); }

 private:
  bool copy(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;
  bool publish() noexcept;
  bool room_for(std::uint64_t need) noexcept;
  WriteQueue* header() const noexcept { return region_.as<WriteQueue>(); }
  std::byte* data() const noexcept { return region_.data() + kWriteQueueData; }

  Region region_;
  Key key_{};
  std::uint64_t capacity_ = 0;
  std::uint64_t tail_ = 0;  // own copy; ahead of the published tail between copy and publish
  std::uint64_t base_ = 0;
  std::uint64_t drained_ = 0;  // the last value read
};

}  // namespace crane::consensus::shm
