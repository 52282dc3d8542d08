// SPDX-License-Identifier: Apache-2.0
#pragma once
// The log that an analysis replica gets, kept on disk until its slow server has run it: a history
// (proxy/record/history_record.h) that is read at its front while it grows at its end.
//
// Threads: one object, one thread.
//
// INVARIANT SPOOL-1  Bytes kept and not read yet never exceed the limit.  At the limit the history
//               gets its end record, and take_message() reports it once.

#include <cstdint>
#include <memory>
#include <string>

#include "consensus/consensus.h"
#include "dmt/base/result.h"
#include "proxy/record/history_record.h"

namespace crane::node {

class Spool {
 public:
  // Replaces the files of an earlier spool.
  static Result<std::unique_ptr<Spool>> open(const std::string& dir, std::uint8_t replica,
                                             const std::string& about, std::uint64_t limit);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // The next entry; dropped once the history has ended.
  void committed(const consensus::EntryView& entry);
  // The file was read up to this position: frees the blocks before it at intervals.
  void read_up_to(std::uint64_t position);
  void flush() { history_->flush(); }
  // No more entries will come; `why` is the reason.
  void end(const std::string& why);

  bool ended() const noexcept { return ended_; }
  std::uint64_t last() const noexcept { return last_; }                 // entry; 0: none
  std::uint64_t kept() const noexcept { return written_ - released_; }  // bytes
  std::string take_message();

 private:
  Spool(std::unique_ptr<proxy::HistoryRecorder> history, int fd, std::string path,
        std::uint64_t limit)
      : history_(std::move(history)), fd_(fd), path_(std::move(path)), limit_(limit) {}

  std::unique_ptr<proxy::HistoryRecorder> history_;
  const int fd_;
  const std::string path_;
  const std::uint64_t limit_;
  std::uint64_t last_ = 0, written_ = 0, released_ = 0;
  bool ended_ = false;
  std::string message_;
};

}  // namespace crane::node
