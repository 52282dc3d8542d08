// SPDX-License-Identifier: Apache-2.0
#pragma once
// What /proc tells about another process of this host: a number and a start time name one process
// for ever.  And what threads of this one need.
//
// Threads: pure functions; SignalsBlocked by the one that made it.

#include <signal.h>
#include <sys/types.h>

#include <cstdint>

namespace crane::consensus {

// What /proc/<pid>/stat says after the command's name; empty when there is no such process.
struct ProcessStat {
  char state = 0;           // field 3
  std::uint64_t start = 0;  // field 22: clock ticks since boot
};
ProcessStat process_stat(pid_t pid) noexcept;
inline std::uint64_t process_start(pid_t pid) noexcept { return process_stat(pid).start; }

// A descriptor that becomes readable when the process is gone; -1 when it is.
int open_pidfd(pid_t pid) noexcept;

// While it lives, threads that the calling one starts take no signals: those are the loop's
// business.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept;
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace crane::consensus
