// SPDX-License-Identifier: Apache-2.0
#pragma once
// The end of the server's main process: first at a turn, which every replica sees at the same one,
// then for the kernel.  An end that the schedule does not know of is this replica's failure
// (server_monitor.h).
//
// Threads: the node's one thread.  Pure.
// INVARIANT END-1  An end is reported only after the schedule knew of it.

#include <sys/wait.h>

#include <cstdint>
#include <string>
#include <utility>

#include "dmt/base/assert.h"

namespace crane::node {

class ServerExit {
 public:
  // It ended at a turn; `status` as wait(2) gives it, `others`: of its processes go on.
  void at_turn(int status, std::uint64_t others) noexcept {
    exited_ = true;
    status_ = status;
    others_ = others;
  }
  // The kernel has ended it as well.  `refused`: what libcrane.so did not let it execute; or "".
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
  // It has left its work to processes in the background, as a daemon does that starts.
  bool in_background() const noexcept { return status_ == 0 && others_ != 0; }
  // As crane-run has it in its messages.
  const char* reason() const noexcept {
    return by_signal() ? "signal" : in_background() ? "background" : "exited";
  }
  // As a shell shows it; 0 before it is reported.
  int code() const noexcept {
    if (!reported_) return 0;
    return by_signal() ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
  }

 private:
  bool exited_ = false, reported_ = false;
  int status_ = 0;
  std::uint64_t others_ = 0;
  std::string refused_;
};

}  // namespace crane::node
