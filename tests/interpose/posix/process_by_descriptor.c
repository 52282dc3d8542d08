// SPDX-License-Identifier: Apache-2.0
// pidfd_open: the descriptor is readable once the process has ended, waitid waits for it, and
// signals are sent through it.
#define _GNU_SOURCE
#include <poll.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>

#include "../child.h"

static int stands(int unused) {
  for (;;) pause();
  return unused;
}

int main(void) {
  CHECK_EQUAL(syscall(SYS_pidfd_open, -1, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(syscall(SYS_pidfd_open, getpid(), 0x100000), -1);
  CHECK_EQUAL(errno, EINVAL);
  const pid_t child = start_process(stands, 0);
  const int fd = (int)syscall(SYS_pidfd_open, child, 0);
  CHECK(fd >= 0);
  struct pollfd p = {fd, POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 0), 0);
  siginfo_t info;
  memset(&info, 0, sizeof info);
  CHECK_EQUAL(waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG), 0);
  CHECK_EQUAL(info.si_pid, 0);
  CHECK_EQUAL(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0), 0);
  CHECK_EQUAL(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0), 0);
  CHECK_EQUAL(poll(&p, 1, 10000), 1);
  CHECK_EQUAL(waitid(P_PIDFD, (id_t)fd, &info, WEXITED), 0);
  CHECK_EQUAL(info.si_pid, child);
  CHECK_EQUAL(info.si_code, CLD_KILLED);
  CHECK_EQUAL(info.si_status, SIGTERM);
  CHECK_EQUAL(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0), -1);
  CHECK_EQUAL(errno, ESRCH);
  return succeed();
}
