// SPDX-License-Identifier: Apache-2.0
#pragma once
// The log after a checkpoint as a file, for a backup: `crane-ctl backup` stores it with the
// checkpoint, and a replica of the restored group reads it into its store before it begins.
//
//   head      magic, version, the log's id; the places before the first entry and after the last
//             one, the number of entries, a digest of their bytes; a checksum of the head
//   entries   as in the ring and in the store (core/log.h), one after the other
//
// The head is written last: a file without one is invalid.  It contains the log's id, which is
// secret.
//
// INVARIANT BACKUP-1  A reader that reaches the end has returned, entry by entry, the log after
//        `begin`: of this log id, contiguous in index and position, each entry with its
//        predecessor's view and a valid checksum.  It ends where the head says, and its digest is
//        the head's.
//
// Threads: one object, one thread.  Reading blocks for as long as the disk does.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/result.h"

namespace crane::consensus {

struct LogTail {
  std::uint64_t log_id = 0;
  LogPlace begin, end;
  std::uint64_t entries = 0;
};

// Reads bytes from the file's beginning on and fills `to`; only the last read returns fewer bytes.
using TailSource = std::function<Result<std::size_t>(std::span<std::byte> to)>;
// A source that reads the file at `path`.
Result<TailSource> tail_of_file(const std::string& path);

class LogTailReader {
 public:
  // kDamaged, kWrongVersion: the error's text gives the reason.
  static Result<LogTailReader> open(TailSource source);

  // The contents of the head; verified once next() has reached the end.
  const LogTail& tail() const noexcept { return tail_; }
  // The next whole entries, valid until the next call.  Empty: the end was reached, and all is
  // whole (BACKUP-1).
  Result<std::span<const std::byte>> next();

 private:
  explicit LogTailReader(TailSource source) : source_(std::move(source)) {}
  Result<bool> fill();
  Outcome take_entries();
  Result<std::span<const std::byte>> finish();

  TailSource source_;
  LogTail tail_;
  std::uint64_t digest_ = 0, head_digest_ = 0;
  LogPlace at_;
  std::vector<std::byte> buffer_;  // read from the source
  std::size_t used_ = 0;           // bytes of `buffer_` that next() has returned
};

// Reads and checks the whole file.
Result<LogTail> check_log_tail(const std::string& path);

}  // namespace crane::consensus
