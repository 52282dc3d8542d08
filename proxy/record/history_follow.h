// SPDX-License-Identifier: Apache-2.0
#pragma once
// A history (history_record.h) that is still being recorded, entry by entry: what an analysis
// replica's server runs while the group serves.  It holds no more than one piece of the file.
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
  // What it says of the server must be there already.  Errors as History::open().
  static Result<HistoryFollower> open(const std::string& path, std::string& why);

  std::uint32_t replica() const noexcept { return file_.replica(); }
  const std::string& about() const noexcept { return about_; }
  const std::string& path() const noexcept { return path_; }

  // The next one, which is valid until the next call; nullopt: it is not there (yet).
  std::optional<consensus::EntryView> next();
  // The history was ended, and all of it was handed out.
  bool ended() const noexcept { return file_.ended() && !first_; }
  // Why nothing more will come although it has not ended; empty: more may come.
  const std::string& damage() const noexcept { return damage_; }

  std::uint64_t last() const noexcept { return last_; }                 // handed out; 0: none
  std::uint64_t first_stamp_ns() const noexcept { return began_; }      // of the first and the
  std::uint64_t last_stamp_ns() const noexcept { return newest_; }      // last input
  std::uint64_t position() const noexcept { return file_.position(); }  // in the file

 private:
  HistoryFollower(RecordTail file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  std::optional<RecordTail::Record> next_record();

  RecordTail file_;
  std::string path_, about_, damage_;
  std::optional<RecordTail::Record> first_;  // read when `about` was
  std::uint64_t last_ = 0, began_ = 0, newest_ = 0;
};

}  // namespace crane::proxy
