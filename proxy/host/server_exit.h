// SPDX-License-Identifier: Apache-2.0
#pragma once
// The end of the server's main process.  First it ends at a turn, which is the same on every
// replica; then the kernel reports its end.  An end without that turn is a failure of this replica
// (server_monitor.h).
//
// Threads: the node's one thread.  Pure.
// INVARIANT END-1  An end is reported only after the schedule contains it.

#include <sys/wait.h>

#include <cstdint>
#include <string>
#include <utility>

#include "dmt/base/assert.h"

namespace crane::node {

class ServerExit {
 public:
  // It ended at a turn; `status` as from wait(2), `processes_left`: the number of processes that
  // continue.
  void at_turn(int status, std::uint64_t processes_left) noexcept {
    exited_ = true;
    status_ = status;
    processes_left_ = processes_left;
  }
  // The kernel has ended it, too.  `refused`: the program that libcrane.so did not execute; or "".
  void report(std::string refused = {}) {
    CRANE_ASSERT(exited_);  // END-1
    reported_ = true;
    refused_ = std::move(refused);
  }
  const std::string& refused() const noexcept { return refused_; }

  bool exited() const noexcept { return exited_; }
  bool reported() const noexcept { return reported_; }
  bool by_signal() const noexcept { return WIFSIGNALED(status_); }
  bool failed() const noexcept { return status_ != 0; }
  // It has left its work to background processes, as a starting daemon does.
  bool in_background() const noexcept { return status_ == 0 && processes_left_ != 0; }
  // The word for it in messages to crane-run.
  const char* reason() const noexcept {
    return by_signal() ? "signal" : in_background() ? "background" : "exited";
  }
  // The exit status as a shell shows it; 0 before it is reported.
  int code() const noexcept {
    if (!reported_) return 0;
    return by_signal() ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
  }

 private:
  bool exited_ = false, reported_ = false;
  int status_ = 0;
  std::uint64_t processes_left_ = 0;
  std::string refused_;
};

}  // namespace crane::node
