// SPDX-License-Identifier: Apache-2.0
#pragma once
// The position in the log that a replica's server has reached with its files: `position` in the
// replica's directory.  The node keeps the file mapped, so that it survives the end of every
// process.
//
// The node moves the position before it sends the answers of that position.  So the replica with
// the furthest position has the files of everything that was answered.
//
// Threads: one writer; readers only when the node is gone.

#include <cstdint>
#include <optional>
#include <string>

#include "dmt/base/result.h"

namespace crane::checkpoint {

struct Position {
  enum End : std::uint32_t {
    kNone = 0,     // no orderly end
    kStopped = 1,  // its node got a stop request, and had applied all committed entries
    kEnded = 2,    // the server ended at a turn, on all replicas
  };
  std::uint64_t index = 0;  // the last entry that the server admitted
  std::uint64_t clock = 0;  // the logical clock
  std::uint32_t end = kNone;
};

class PositionFile {
 public:
  PositionFile() = default;
  ~PositionFile();
  PositionFile(const PositionFile&) = delete;
  PositionFile& operator=(const PositionFile&) = delete;

  // Makes a new file in the replica's directory, unless it is open.
  Outcome open(const std::string& directory);
  void move(std::uint64_t index, std::uint64_t clock) noexcept {
    if (mapped_ == nullptr) return;
    mapped_->position.index = index;
    mapped_->position.clock = clock;
  }
  void end(Position::End how) noexcept {
    if (mapped_ != nullptr) mapped_->position.end = how;
  }

 private:
  friend std::optional<Position> read_position(const std::string& directory);
  struct Mapped {
    std::uint64_t magic;
    Position position;
  };
  Mapped* mapped_ = nullptr;
};

// Nothing: the file is missing or invalid.
std::optional<Position> read_position(const std::string& directory);

}  // namespace crane::checkpoint
