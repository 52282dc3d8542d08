// SPDX-License-Identifier: Apache-2.0
#include "proxy/record/output_hash.h"

#include <isa-l/crc64.h>

#include <algorithm>

#include "dmt/base/assert.h"

namespace crane::proxy {
namespace {

// A permutation of 64-bit values whose output bits all depend on all input bits (the last step of
// murmur3), so that sums of many values do not cancel by chance.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

constexpr std::uint64_t fold(std::uint64_t chain, std::uint64_t next) noexcept {
  return mix(chain * 0x9e3779b97f4a7c15ULL + next + 1);
}

// Returns the same values as crc64() of dmt/base, using the processor's carry-less multiplication.
std::uint64_t crc64_fast(std::span<const std::byte> bytes, std::uint64_t crc) noexcept {
  return crc64_ecma_refl(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

}  // namespace

void OutputHash::bytes(ConnId conn, std::span<const std::byte> bytes) {
  Stream& stream = open_[value(conn)];
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kHashBucketBytes - stream.filled));
    stream.crc = crc64_fast(part, stream.crc);
    stream.filled += part.size();
    bytes = bytes.subspan(part.size());
    if (stream.filled == kHashBucketBytes) {
      stream.chain = fold(stream.chain, stream.crc);
      mark(value(conn), stream.buckets, stream.chain);
      ++stream.buckets;
      stream.crc = 0;
      stream.filled = 0;
    }
  }
  CRANE_ASSERT(stream.filled < kHashBucketBytes);
}

void OutputHash::closed(ConnId conn) {
  const auto found = open_.find(value(conn));
  const Stream last = found == open_.end() ? Stream{} : found->second;
  const std::uint64_t sum = finish(value(conn), last, true);
  mark(value(conn), last.buckets, sum);
  closed_sum_ += sum;
  if (found != open_.end()) open_.erase(found);
}

std::uint64_t OutputHash::finish(std::uint64_t conn, const Stream& stream, bool closed) noexcept {
  std::uint64_t hash = fold(conn, stream.chain);
  hash = fold(hash, stream.crc);
  return fold(hash, (stream.buckets * kHashBucketBytes + stream.filled) * 2 + (closed ? 1 : 0));
}

OutputHash::State OutputHash::state() const {
  State state{closed_sum_, {}};
  for (const auto& [conn, s] : open_) {
    state.open.push_back({conn, s.chain, s.buckets, s.crc, s.filled});
  }
  return state;
}

void OutputHash::restore(const State& state) {
  closed_sum_ = state.closed_sum;
  open_.clear();
  for (const OutputStream& s : state.open) {
    CRANE_ASSERT(s.filled < kHashBucketBytes);
    open_[s.conn] = {s.chain, s.buckets, s.crc, static_cast<std::size_t>(s.filled)};
  }
  marks_.clear();
  marks_lost_ = true;
}

std::uint64_t OutputHash::digest() const noexcept {
  std::uint64_t sum = closed_sum_;
  for (const auto& [conn, stream] : open_) sum += finish(conn, stream, false);
  return sum;
}

void OutputHash::mark(std::uint64_t conn, std::uint64_t bucket, std::uint64_t value) {
  if (marks_.size() < kMarksMax) {
    marks_.push_back({conn, bucket, value});
  } else {
    marks_lost_ = true;
  }
}

std::vector<OutputMark> OutputHash::marks() const {
  std::vector<OutputMark> all = marks_;
  for (const auto& [conn, stream] : open_) {
    if (stream.filled > 0) all.push_back({conn, stream.buckets, finish(conn, stream, false)});
  }
  return all;
}

void OutputHash::forget(std::size_t done) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(done, marks_.size()));
  marks_.erase(marks_.begin(), marks_.begin() + count);
  marks_lost_ = false;
}

std::uint64_t OutputHash::test_only_crc64(std::span<const std::byte> bytes) noexcept {
  return crc64_fast(bytes, 0);
}

std::uint64_t OutputHash::buckets(ConnId conn) const noexcept {
  const auto found = open_.find(value(conn));
  return found == open_.end() ? 0 : found->second.buckets;
}

std::uint64_t OutputHash::buckets_digest(ConnId conn) const noexcept {
  const auto found = open_.find(value(conn));
  return found == open_.end() ? 0 : found->second.chain;
}

}  // namespace crane::proxy
