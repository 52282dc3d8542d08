// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes that the server has written to one connection, piece after piece, before they go to the
// client in one system call.  They stay where they are: in the output ring.
//
// Threads: the node's one thread.
// INVARIANT GATHER-1  The pieces are of one connection, and each begins where the last one ends; an
//                     urgent byte is the last of them.

#include <array>
#include <cstddef>
#include <span>

#include "dmt/base/assert.h"
#include "dmt/sequence/output.h"
#include "proxy/replica/clients/client_socket.h"

namespace crane::node {

// So many bytes were just hashed and are in the processor's cache when the kernel copies them.
inline constexpr std::size_t kGatheredBytesMost = 256 * 1024;

class GatheredOutput {
 public:
  bool empty() const noexcept { return count_ == 0; }
  bool is_full() const noexcept { return count_ == pieces_.size() || bytes_ >= kGatheredBytesMost; }
  // Whether the bytes of this record follow the last ones, or are the first.
  bool takes(const OutputHeader& header) const noexcept {
    if (header.type != OutputType::kBytes || is_full() || header_.marks.urgent) return false;
    return empty() || (header.conn == header_.conn && header.argument == header_.argument + bytes_);
  }
  // Whether with this record nothing follows them any more.  A reset is not for what waits.
  bool ends_by(const OutputHeader& header) const noexcept {
    const bool closes = header.type == OutputType::kShutdown ||
                        (header.type == OutputType::kClose && header.argument == 0);
    return closes && !empty() && header.conn == header_.conn;
  }
  void add(const OutputHeader& header, std::span<const std::byte> bytes) noexcept {
    CRANE_ASSERT(takes(header));  // GATHER-1
    if (empty()) header_ = header;
    header_.marks = header.marks;
    pieces_[count_++] = bytes;
    bytes_ += bytes.size();
  }
  // Of the first of them, with the marks of the last.
  const OutputHeader& header() const noexcept { return header_; }
  proxy::Pieces pieces() const noexcept { return std::span(pieces_).first(count_); }

 private:
  OutputHeader header_{};
  std::array<std::span<const std::byte>, proxy::kPiecesMost> pieces_{};
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace crane::node
