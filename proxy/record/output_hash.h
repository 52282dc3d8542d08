// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hashes of a replica's outputs (D14).  Per connection, every 1.5 KB of output is
// folded into a CRC64 (FALCON 5).  The value of a bucket depends only on the connection's bytes,
// not on how the server split them into writes or on other connections.
//
// Threads: one object, one thread.
//
// INVARIANT HASH-1  Two replicas that wrote the same bytes to the same connections and closed the
//                   same ones have equal digests, whatever the order between connections.

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "dmt/base/ids.h"

namespace crane::proxy {

inline constexpr std::size_t kHashBucketBytes = 1536;

// The value of a connection's bucket, to find where two replicas differ.
struct OutputMark {
  std::uint64_t conn;
  std::uint64_t bucket;  // the output bytes from bucket * kHashBucketBytes on
  std::uint64_t value;   // hash of the bucket, and of the connection's end if it is in the bucket
};

// An open connection, as a checkpoint keeps it.
struct OutputStream {
  std::uint64_t conn = 0;
  std::uint64_t chain = 0;    // hash of the complete buckets
  std::uint64_t buckets = 0;  // the number of complete buckets
  std::uint64_t crc = 0;      // CRC64 of the incomplete bucket
  std::uint64_t filled = 0;   // bytes in the incomplete bucket, < kHashBucketBytes
};

class OutputHash {
 public:
  // The state on which digest() depends.
  struct State {
    std::uint64_t closed_sum = 0;
    std::vector<OutputStream> open;
  };
  State state() const;
  // Continues from `state`; earlier marks are lost (marks_whole() is false until forget()).
  void restore(const State& state);

  void bytes(ConnId conn, std::span<const std::byte> bytes);
  // The connection writes no more; its memory is freed.
  void closed(ConnId conn);

  // Output since the last forget(): a mark per bucket that was completed or ended, and one per
  // incomplete bucket.  marks_whole() is true if none was left out for lack of room.
  std::vector<OutputMark> marks() const;
  bool marks_whole() const noexcept { return !marks_lost_; }
  // The number of marks of completed buckets; forget() drops the `done` oldest ones.
  std::size_t marks_done() const noexcept { return marks_.size(); }
  void forget(std::size_t done);

  // Digest of all connections so far, including the open ones.
  std::uint64_t digest() const noexcept;
  // Complete buckets of an open connection, and their hash; 0 if the connection is unknown.
  std::uint64_t buckets(ConnId conn) const noexcept;
  std::uint64_t buckets_digest(ConnId conn) const noexcept;
  std::size_t open_connections() const noexcept { return open_.size(); }
  static std::uint64_t test_only_crc64(std::span<const std::byte> bytes) noexcept;

 private:
  struct Stream {
    std::uint64_t chain = 0;    // hash of the complete buckets
    std::uint64_t buckets = 0;  // the number of complete buckets
    std::uint64_t crc = 0;      // CRC64 of the incomplete bucket
    std::size_t filled = 0;     // bytes in the incomplete bucket, < kHashBucketBytes
  };
  static std::uint64_t finish(std::uint64_t conn, const Stream& stream, bool closed) noexcept;

  std::unordered_map<std::uint64_t, Stream> open_;
  std::uint64_t closed_sum_ = 0;
  static constexpr std::size_t kMarksMax = 16384;
  void mark(std::uint64_t conn, std::uint64_t bucket, std::uint64_t value);
  std::vector<OutputMark> marks_;
  bool marks_lost_ = false;
};

}  // namespace crane::proxy
