// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes the log after a checkpoint into a file (log_tail.h), a piece at a time, so that the
// store's owner can do other work between two pieces.
//
// Threads: one at a time.

#include <cstdint>
#include <string>
#include <vector>

#include "consensus/core/log.h"
#include "consensus/store/store.h"

namespace crane::consensus::store {

class TailWriter {
 public:
  // Writes the entries after `begin` up to index `to`, which are committed and in the store.
  // `path`: an existing file, which is overwritten.
  TailWriter(std::string path, const core::Cursor& begin, Index to)
      : path_(std::move(path)), begin_(begin), at_(begin), to_(to) {}
  ~TailWriter();
  TailWriter(const TailWriter&) = delete;
  TailWriter& operator=(const TailWriter&) = delete;

  // Writes one piece.  kGone: the store no longer reaches back to the place; kBadArgument: the log
  // has another entry at the place; kDamaged: the store cannot be read; kFull, kSystem: writing the
  // file failed.  After an error no call continues.
  Outcome step(Store& store);
  bool done() const noexcept { return done_; }
  Index last() const noexcept { return at_.last.index; }

 private:
  Outcome begin(Store& store);
  Outcome piece(Store& store);
  Outcome finish(std::uint64_t log_id);
  Outcome write(const void* bytes, std::size_t size, std::uint64_t offset);

  const std::string path_;
  const core::Cursor begin_;
  core::Cursor at_;
  const Index to_;
  int fd_ = -1;
  bool done_ = false;
  std::uint64_t digest_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace crane::consensus::store
