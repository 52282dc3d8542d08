// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs blocking work (packing, verifying, shipping) beside a node, in a child process.  The child
// has a small share of the processors, which grows while it waits for them (background.h), and the
// lowest usual priority for the disk.  It dies with the node.
//
// A process, not a thread: a thread that starves while it holds the lock of the memory map or of
// malloc would block the node.  Also, a process can be killed at any moment without harm (image.h,
// IMAGE-4).
//
// Threads: the node's only thread; start() forks, so the caller must be single-threaded.  The job
// runs in a copy of the caller's memory and ends with _exit().  All descriptors are closed except
// 0, 1, 2 and one that the caller names, so the job opens what it needs.  The caller sees only its
// messages.

#include <sys/types.h>

#include <functional>
#include <string>

#include "checkpoint/descriptor.h"

namespace crane::checkpoint {

class Worker {
 public:
  // How a job reports its progress.
  struct Report {
    std::function<void(const std::string& line)> line;
    std::function<void(std::uint64_t done, std::uint64_t of)> bytes;
  };
  // Returns its result; an error has the sentence for the operator.
  using Job = std::function<Result<std::string>(const Report& report)>;

  Worker() = default;
  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Called by advance() for each progress line; may be empty.
  using OnLine = std::function<void(const std::string& line)>;

  // `keep`: a descriptor that stays open in the job.  Errors: kSystem.  REQUIRES: idle().
  Outcome start(const Job& job, OnLine on_line = {}, int keep = -1);
  bool idle() const noexcept { return child_ < 0; }
  // A replica waits for the job's result: gives the job the usual share from now on.
  void hurry() noexcept;

  // Readable when advance() has something to do; -1 when idle.
  int event_fd() const noexcept { return channel_.get(); }
  // Processes the job's messages; never waits for the job.  True: the job has ended, result() has
  // its answer, and the worker is idle.
  bool advance();
  const std::string& progress() const { return progress_; }  // the last progress line
  std::uint64_t bytes_done() const noexcept { return done_; }
  std::uint64_t bytes_in_all() const noexcept { return of_; }  // 0: not known
  // Valid after advance() returned true. kSystem also when the job was killed.
  const Result<std::string>& result() const { return result_; }

  // Kills the job, if it runs; the worker is then idle.
  void stop() noexcept;

 private:
  void take(const std::string& line);
  void reap() noexcept;

  pid_t child_ = -1;
  Descriptor channel_;
  std::string arrived_, progress_;
  std::uint64_t done_ = 0, of_ = 0;
  bool answered_ = false, hurries_ = false;
  OnLine on_line_;
  Result<std::string> result_{std::string()};
};

}  // namespace crane::checkpoint
