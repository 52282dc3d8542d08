// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a history (history_record.h) entry by entry while it is being recorded: an analysis
// replica's server runs it while the group serves.  The object holds at most one piece of the file.
//
// Threads: one object, one thread.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "consensus/consensus.h"
#include "dmt/base/result.h"
#include "proxy/record/record_tail.h"

namespace crane::proxy {

class HistoryFollower {
 public:
  // The description of the server must already be in the file.  Errors: those of History::open().
  static Result<HistoryFollower> open(const std::string& path, std::string& why);

  std::uint32_t replica() const noexcept { return file_.replica(); }
  const std::string& about() const noexcept { return about_; }
  const std::string& path() const noexcept { return path_; }

  // The next entry, valid until the next call; nullopt: it does not exist (yet).
  std::optional<consensus::EntryView> next();
  // The history has ended, and all of it was returned.
  bool ended() const noexcept { return file_.ended() && !first_; }
  // Why no more entries will follow although the history has not ended; empty: more may follow.
  const std::string& damage() const noexcept { return damage_; }

  // The last entry that was returned; 0: none.
  std::uint64_t last() const noexcept { return last_; }
  std::uint64_t first_stamp_ns() const noexcept { return began_; }      // stamp of the first input
  std::uint64_t last_stamp_ns() const noexcept { return newest_; }      // stamp of the last input
  std::uint64_t position() const noexcept { return file_.position(); }  // position in the file

 private:
  HistoryFollower(RecordTail file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  std::optional<RecordTail::Record> next_record();

  RecordTail file_;
  std::string path_, about_, damage_;
  std::optional<RecordTail::Record> first_;  // read together with `about`
  std::uint64_t last_ = 0, began_ = 0, newest_ = 0;
};

}  // namespace crane::proxy
