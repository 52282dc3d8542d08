// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hashes of a replica's outputs (DESIGN section 8): per connection, every 1.5 KB of output is
// folded into a CRC64 (FALCON 5).  A bucket's value depends on the connection's bytes only, not on
// how the server cut them into writes, nor on what other connections did meanwhile.
//
// Threads: one object, one thread.
//
// INVARIANT HASH-1  Two replicas that wrote the same bytes to the same connections and closed the
//               same ones have equal digests, whatever the order between connections.

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "dmt/base/ids.h"

namespace crane::proxy {

inline constexpr std::size_t kHashBucketBytes = 1536;

// What a connection's bucket was, for telling where two replicas differ.
struct OutputMark {
  std::uint64_t conn;
  std::uint64_t bucket;  // output bytes from bucket * kHashBucketBytes on
  std::uint64_t value;   // over it and, when the connection ended in it, over that
};

// One open connection, as a checkpoint keeps it.
struct OutputStream {
  std::uint64_t conn = 0;
  std::uint64_t chain = 0;    // over the complete buckets
  std::uint64_t buckets = 0;  // how many they are
  std::uint64_t crc = 0;      // CRC64 of the bucket that fills
  std::uint64_t filled = 0;   // its bytes, < kHashBucketBytes
};

class OutputHash {
 public:
  // All that digest() depends on.
  struct State {
    std::uint64_t closed_sum = 0;
    std::vector<OutputStream> open;
  };
  State state() const;
  // Goes on from there; marks before it are gone (marks_whole() is false until forget()).
  void restore(const State& state);

  void bytes(ConnId conn, std::span<const std::byte> bytes);
  // The connection writes no more; its memory is freed.
  void closed(ConnId conn);

  // What was written since the last forget(): a mark per bucket that filled or ended, and one per
  // bucket that fills.  `whole`: none was left out for lack of room.
  std::vector<OutputMark> marks() const;
  bool marks_whole() const noexcept { return !marks_lost_; }
  // How many marks there are of buckets that are done; forget() drops so many of the oldest.
  std::size_t marks_done() const noexcept { return marks_.size(); }
  void forget(std::size_t done);

  // Over all connections so far, those still open included.
  std::uint64_t digest() const noexcept;
  // Buckets of an open connection that are complete, and the hash over them; 0 if unknown.
  std::uint64_t buckets(ConnId conn) const noexcept;
  std::uint64_t buckets_digest(ConnId conn) const noexcept;
  std::size_t open_connections() const noexcept { return open_.size(); }
  static std::uint64_t test_only_crc64(std::span<const std::byte> bytes) noexcept;

 private:
  struct Stream {
    std::uint64_t chain = 0;    // over the complete buckets
    std::uint64_t buckets = 0;  // how many they are
    std::uint64_t crc = 0;      // CRC64 of the bucket that fills
    std::size_t filled = 0;     // its bytes, < kHashBucketBytes
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
