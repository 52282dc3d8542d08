// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far a replica's server had come with its files: `position` in the replica's directory, which
// the node keeps mapped, so that it survives every end of every process.
//
// The node moves the position before the answers of that place leave: whichever replica's stands
// furthest has the files of all that was answered.
//
// Threads: one writer; readers only when its node is gone.

#include <cstdint>
#include <optional>
#include <string>

#include "dmt/base/result.h"

namespace crane::checkpoint {

struct Position {
  enum End : std::uint32_t {
    kNone = 0,     // nothing has ended it in order
    kStopped = 1,  // its node was told to stop, and had carried out what was committed
    kEnded = 2,    // the server ended at a turn, on all replicas
  };
  std::uint64_t index = 0;  // of the last entry that its server admitted
  std::uint64_t clock = 0;  // logical
  std::uint32_t end = kNone;
};

class PositionFile {
 public:
  PositionFile() = default;
  ~PositionFile();
  PositionFile(const PositionFile&) = delete;
  PositionFile& operator=(const PositionFile&) = delete;

  // Makes it again in the replica's directory, if it is not open.
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

// Nothing: there is none, or it is not one.
std::optional<Position> read_position(const std::string& directory);

}  // namespace crane::checkpoint
