// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs what blocks (packing, verifying, shipping) beside a node: in a child process with a small
// share of the processors, which grows while it waits for them (work_share.h), and the lowest usual
// priority for the disk.  It dies with the node.
//
// A process and not a thread: a thread that starves while it holds the memory map's lock, or
// malloc's, would hold up the node; a process is also killed at any moment without harm (image.h,
// IMAGE-4).
//
// Threads: the node's one thread; start() forks, so the caller must be single-threaded.  The job
// runs in a copy of the caller's memory with all descriptors but 0, 1 and 2, and one that the
// caller names, closed, and ends with _exit(): it opens what it needs, and nothing that it changes
// is seen here but its answer.

#include <sys/types.h>

#include <functional>
#include <string>

#include "checkpoint/descriptor.h"

namespace crane::checkpoint {

class Worker {
 public:
  // What a job says, at once or at its end.
  using Say = std::function<void(const std::string& line)>;
  // Returns its result; an error has the sentence for the operator.
  using Job = std::function<Result<std::string>(const Say& progress)>;

  Worker() = default;
  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // What happens to each line that the job says, in advance(); may be empty.
  using OnLine = std::function<void(const std::string& line)>;

  // `keep`: one more descriptor that the job has.  Errors: kSystem.  REQUIRES: idle().
  Outcome start(const Job& job, OnLine on_line = {}, int keep = -1);
  bool idle() const noexcept { return child_ < 0; }
  // A replica waits for what the job makes: the job's share is the usual one from here on.
  void hurry() noexcept;

  // Readable when advance() has something to do; -1 when idle.
  int event_fd() const noexcept { return channel_.get(); }
  // Takes what arrived; never waits for the job.  True: it has ended, result() has its answer, and
  // the worker is idle.
  bool advance();
  const std::string& progress() const { return progress_; }  // the last line it said
  // After advance() said so.  kSystem also when it was killed.
  const Result<std::string>& result() const { return result_; }

  // Kills it, if it runs; the worker is idle.
  void stop() noexcept;

 private:
  void take(const std::string& line);
  void reap() noexcept;

  pid_t child_ = -1;
  Descriptor channel_;
  std::string arrived_, progress_;
  bool answered_ = false, hurries_ = false;
  OnLine on_line_;
  Result<std::string> result_{std::string()};
};

}  // namespace crane::checkpoint
