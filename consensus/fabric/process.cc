// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/process.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace crane::consensus {

ProcessStat process_stat(pid_t pid) noexcept {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[1024];
  const ssize_t size = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (size <= 0) return {};
  text[size] = '\0';
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] != ' ') return {};
  ProcessStat found;
  found.state = at[2];
  unsigned long long flags = 0, start = 0;
  for (int field = 2; at != nullptr && field < 22; ++field) {
    at = std::strchr(at + 1, ' ');
    if (at != nullptr && field == 8) std::sscanf(at, " %llu", &flags);
  }
  if (at == nullptr || std::sscanf(at, " %llu", &start) != 1) return {};
  found.flags = flags;
  found.start = start;
  return found;
}

int open_pidfd(pid_t pid) noexcept { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

SignalsBlocked::SignalsBlocked() noexcept {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace crane::consensus
