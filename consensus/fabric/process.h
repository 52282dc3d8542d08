// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of another process of this host, from /proc. A process number and a start time identify
// one process for ever.  Also: a helper to start threads without signals.
//
// Threads: pure functions; a SignalsBlocked belongs to the thread that made it.

#include <signal.h>
#include <sys/types.h>

#include <cstdint>

namespace crane::consensus {

// Fields of /proc/<pid>/stat; empty when there is no such process.
struct ProcessStat {
  char state = 0;           // field 3
  std::uint64_t flags = 0;  // field 9, of the main thread
  std::uint64_t start = 0;  // field 22: clock ticks since boot

  // PF_EXITING: a thread sets it when it begins to exit, and never leaves the kernel again.
  static constexpr std::uint64_t kExiting = 0x4;

  bool stopped() const noexcept { return state == 'T'; }  // by a signal
  // The main thread no longer executes the program or a system call of it.  The process remains
  // until the kernel has torn down its memory, which takes milliseconds when that is large.
  bool main_thread_ended() const noexcept {
    return state == 'Z' || state == 'X' || (flags & kExiting) != 0;
  }
};
ProcessStat process_stat(pid_t pid) noexcept;
inline std::uint64_t process_start(pid_t pid) noexcept { return process_stat(pid).start; }

// A descriptor that becomes readable when the process is gone; -1 when it is gone already.
int open_pidfd(pid_t pid) noexcept;

// While it exists, threads that the calling thread starts block all signals: the loop handles
// those.
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
