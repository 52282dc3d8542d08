// SPDX-License-Identifier: Apache-2.0
#pragma once
// The log behind a checkpoint as a file, for a backup: what `crane-ctl backup` puts beside the
// checkpoint, and what a replica of the restored group takes into its store before it begins.
//
//   head      magic, version, the log's id; the places before the first entry and behind the last
//             one, how many entries, a digest of their bytes; a checksum of the head
//   entries   as they stand in the ring and in the store (core/log.h), one behind the other
//
// The head is written last: a file without one is no tail.  It has the log's id, which is secret.
//
// INVARIANT BACKUP-1  What a reader hands out to its end is, entry by entry, the log behind
//        `begin`: of this log id, contiguous in index and position, each naming its predecessor's
//        view, each with its checksum; and it ends where the head says, with the head's digest.
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

// Bytes from the file's beginning on: fills `to`, with less at the end only.
using TailSource = std::function<Result<std::size_t>(std::span<std::byte> to)>;
// Of the file at `path`.
Result<TailSource> tail_of_file(const std::string& path);

class LogTailReader {
 public:
  // kDamaged, kWrongVersion: with what is wrong as its text.
  static Result<LogTailReader> open(TailSource source);

  // What the head says; true once next() came to the end.
  const LogTail& tail() const noexcept { return tail_; }
  // The next whole entries; none: that was all, and it is whole (BACKUP-1).  Valid until the next
  // call.
  Result<std::span<const std::byte>> next();

 private:
  explicit LogTailReader(TailSource source) : source_(std::move(source)) {}
  Result<bool> fill();
  Outcome take_entries();
  Result<std::span<const std::byte>> finish();

  TailSource source_;
  LogTail tail_;
  std::uint64_t digest_ = 0, digest_said_ = 0;
  LogPlace at_;
  std::vector<std::byte> buffer_;  // read, and not yet handed out ...
  std::size_t used_ = 0;           // ... but for so many bytes
};

// Reads all of it.
Result<LogTail> check_log_tail(const std::string& path);

}  // namespace crane::consensus
