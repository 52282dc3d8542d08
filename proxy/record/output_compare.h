// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compares the recorded outputs of two or more replicas, connection by connection.  The order
// between connections is not compared, because clients cannot see it; every byte of each connection
// is.
//
// Threads: pure functions.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proxy/record/output_record.h"

namespace crane::proxy {

enum class DifferenceKind {
  kMissing,    // the connection is not in this recording
  kPeer,       // another port or peer address
  kBytes,      // another byte at `offset`
  kLength,     // equal up to `offset`, where this recording's output ends
  kClosing,    // closed in another way, or not closed
  kEndsEarly,  // the recording ends before its replica did (no connection)
};

// How recording `right` differs from recording `left` in one connection.
struct Difference {
  DifferenceKind kind = DifferenceKind::kBytes;
  std::uint64_t conn = 0;
  std::size_t left = 0, right = 0;    // numbers of the recordings
  std::uint64_t offset = 0;           // first different byte of the connection's output
  std::string left_text, right_text;  // text of both sides, for all kinds except kBytes and kLength
  // Bytes around `offset`, from `context_offset` on.
  std::uint64_t context_offset = 0;
  std::vector<std::byte> left_bytes, right_bytes;
};

struct CompareOptions {
  // A recording that ends early may contain less: compares only what it contains.
  bool prefix = false;
  std::size_t context_bytes = 32;    // on each side of the difference
  std::size_t differences_max = 20;  // the most that are listed; all are counted
};

struct Comparison {
  std::size_t recordings = 0;
  std::uint64_t connections = 0;  // in any of them
  std::uint64_t different = 0;    // connections that differ
  std::uint64_t shorter = 0;      // connections that are incomplete because a recording ends early
  std::vector<std::uint64_t> bytes;     // of each recording
  std::vector<Difference> differences;  // at most one per connection, in order of connections
  bool equal() const noexcept { return different == 0 && differences.empty(); }
};

// REQUIRES: at least two recordings.
Comparison compare(const std::vector<Recording>& recordings, const CompareOptions& options);

const char* name(DifferenceKind kind) noexcept;

// Up to `count` bytes of a connection's output from `offset` on.
std::vector<std::byte> bytes_at(const Recording::Connection& connection, std::uint64_t offset,
                                std::size_t count);

}  // namespace crane::proxy
