// SPDX-License-Identifier: Apache-2.0
#pragma once
// The end of a connection's output: the bytes that the server has written and that are not known to
// be in the client's socket yet.  Every replica keeps it, so that each can go on at any byte.
//
//   0 ............ from() ======== kept ======== end()      positions since the connection's start
//                                     put() moves from() on
//
// Pure.  Threads: one object, one thread.
// INVARIANT TAIL-1  What is kept is gap-free: the bytes from from() to end(), each once.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace crane::proxy {

class OutputTail {
 public:
  OutputTail() = default;
  // A replica that recovers knows what was written only from `at` on.
  explicit OutputTail(std::uint64_t at) noexcept : from_(at), end_(at) {}

  // The server has written `bytes` at position `at`.  Those before from() are put already.
  void append(std::uint64_t at, std::span<const std::byte> bytes);
  // All bytes before `total` are in the socket.
  void put(std::uint64_t total) noexcept;
  // The last byte that was appended is urgent.  As a kernel that sends, it keeps the last mark.
  void note_urgent() noexcept { urgent_ = end_; }
  // How many of bytes() come before the urgent one: all, when none is.
  std::size_t before_urgent() const noexcept;
  // `bytes` before from() may not be with the client after all.
  void take_back(std::span<const std::byte> bytes);
  // Keeps nothing any more, until append() comes to a later position.
  void forget() noexcept { put(end_); }

  std::uint64_t from() const noexcept { return from_; }
  std::uint64_t end() const noexcept { return end_; }
  std::size_t size() const noexcept { return bytes_.size() - dropped_; }
  std::span<const std::byte> bytes() const noexcept { return std::span(bytes_).subspan(dropped_); }

 private:
  std::vector<std::byte> bytes_;
  std::size_t dropped_ = 0;  // at the front of bytes_
  std::uint64_t from_ = 0;
  std::uint64_t urgent_ = 0;  // where the last urgent byte ends, put or not; 0: none
  std::uint64_t end_ = 0;     // of what the server has written, at least from_ - what it lacks
};

}  // namespace crane::proxy
