// SPDX-License-Identifier: Apache-2.0
#pragma once
// What /proc tells about another process of this host: a number and a start time name one process
// for ever.
//
// Threads: pure functions.

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

}  // namespace crane::consensus
