// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an analysis replica gets of the log, kept on disk until its slow server has run it: a
// history (proxy/record/history_record.h) that is read at its front while it grows at its end.
//
// Threads: one object, one thread.
//
// INVARIANT SPOOL-1  What is kept and not read yet never exceeds the limit; when it would, the
//               history ends there, in order, and take_message() says so once.

#include <cstdint>
#include <memory>
#include <string>

#include "consensus/consensus.h"
#include "dmt/base/result.h"
#include "proxy/record/history_record.h"

namespace crane::node {

class Spool {
 public:
  // Replaces what an earlier one left there.
  static Result<std::unique_ptr<Spool>> open(const std::string& dir, std::uint8_t replica,
                                             const std::string& about, std::uint64_t limit);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // The next entry; dropped once the history has ended.
  void committed(const consensus::EntryView& entry);
  // What is before this position in the file was read: its room is given back now and then.
  void read_up_to(std::uint64_t position);
  void flush() { history_->flush(); }
  // No more will come, because of `why`.
  void end(const std::string& why);

  bool ended() const noexcept { return ended_; }
  std::uint64_t last() const noexcept { return last_; }                   // entry; 0: none
  std::uint64_t kept() const noexcept { return written_ - given_back_; }  // bytes
  std::string take_message();

 private:
  Spool(std::unique_ptr<proxy::HistoryRecorder> history, int fd, std::string path,
        std::uint64_t limit)
      : history_(std::move(history)), fd_(fd), path_(std::move(path)), limit_(limit) {}

  std::unique_ptr<proxy::HistoryRecorder> history_;
  const int fd_;
  const std::string path_;
  const std::uint64_t limit_;
  std::uint64_t last_ = 0, written_ = 0, given_back_ = 0;
  bool ended_ = false;
  std::string message_;
};

}  // namespace crane::node
