// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collects successive pieces of one connection's output, so that they go to the client in one
// system call.  The bytes are not copied: they stay in the output ring.
//
// Threads: the node's one thread.
// INVARIANT GATHER-1  All pieces belong to one connection, and each begins where the previous one
//                     ends; an urgent byte is the last of them.

#include <array>
#include <cstddef>
#include <span>

#include "dmt/base/assert.h"
#include "dmt/sequence/output.h"
#include "proxy/replica/clients/client_socket.h"

namespace crane::node {

// This many freshly hashed bytes are still in the processor's cache when the kernel copies them.
inline constexpr std::size_t kGatheredBytesMost = 256 * 1024;

class GatheredOutput {
 public:
  bool empty() const noexcept { return count_ == 0; }
  bool is_full() const noexcept { return count_ == pieces_.size() || bytes_ >= kGatheredBytesMost; }
  // Whether the bytes of this record are the first, or follow the last piece.
  bool takes(const OutputHeader& header) const noexcept {
    if (header.type != OutputType::kBytes || is_full() || header_.marks.urgent) return false;
    return empty() || (header.conn == header_.conn && header.argument == header_.argument + bytes_);
  }
  // Whether this record ends the connection's output after the pieces.  A reset is not such an end.
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
  // The header of the first piece, with the marks of the last.
  const OutputHeader& header() const noexcept { return header_; }
  proxy::Pieces pieces() const noexcept { return std::span(pieces_).first(count_); }

 private:
  OutputHeader header_{};
  std::array<std::span<const std::byte>, proxy::kPiecesMost> pieces_{};
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace crane::node
