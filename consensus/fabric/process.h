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
  std::uint64_t flags = 0;  // field 9, of the main thread
  std::uint64_t start = 0;  // field 22: clock ticks since boot

  // PF_EXITING: a thread sets it for itself when it begins to end, and never leaves the kernel
  // again.
  static constexpr std::uint64_t kExiting = 0x4;

  bool stopped() const noexcept { return state == 'T'; }  // by a signal
  // It executes nothing of the program any more, and is in no system call of it.  The process is
  // there until the kernel has taken its memory apart, for milliseconds when that is large.
  bool main_thread_ended() const noexcept {
    return state == 'Z' || state == 'X' || (flags & kExiting) != 0;
  }
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
