// SPDX-License-Identifier: Apache-2.0
#pragma once
// The end of a connection's output: the bytes that the server has written and that may not be in
// the client's socket yet.  Every replica keeps it, so that each can continue at any byte.
//
//   0 ............ from() ======== kept ======== end()      positions since the connection's start
//                                     put() advances from()
//
// Pure.  Threads: one object, one thread.
// INVARIANT TAIL-1  The tail has no gap: it contains each byte from from() to end() once.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace crane::proxy {

class OutputTail {
 public:
  OutputTail() = default;
  // A recovering replica knows the output only from `at` on.
  explicit OutputTail(std::uint64_t at) noexcept : from_(at), end_(at) {}

  // The server has written `bytes` at position `at`.  The bytes before from() are already put.
  void append(std::uint64_t at, std::span<const std::byte> bytes);
  // All bytes before `total` are in the socket.
  void put(std::uint64_t total) noexcept;
  // The last appended byte is urgent.  Like a sending kernel, the tail keeps only the last mark.
  void note_urgent() noexcept { urgent_ = end_; }
  // How many of bytes() precede the urgent byte; all if none is urgent.
  std::size_t before_urgent() const noexcept;
  // The `bytes` before from() may not have reached the client.
  void take_back(std::span<const std::byte> bytes);
  // All bytes before end() count as put.  append() ignores them if the server writes them again.
  void forget() noexcept { put(end_); }

  std::uint64_t from() const noexcept { return from_; }
  std::uint64_t end() const noexcept { return end_; }
  std::size_t size() const noexcept { return bytes_.size() - dropped_; }
  std::span<const std::byte> bytes() const noexcept { return std::span(bytes_).subspan(dropped_); }

 private:
  std::vector<std::byte> bytes_;
  std::size_t dropped_ = 0;  // at the front of bytes_
  std::uint64_t from_ = 0;
  std::uint64_t urgent_ = 0;  // the end of the last urgent byte, put or not; 0: none
  std::uint64_t end_ = 0;     // of what the server has written; may be less than from_
};

}  // namespace crane::proxy
