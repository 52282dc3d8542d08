// SPDX-License-Identifier: Apache-2.0
// SIGCHLD's siginfo names the child, how it ended, and its status.
#define _GNU_SOURCE
#include <sys/wait.h>

#include "../small.h"

static siginfo_t next(void) {
  const sigset_t set = set_of_signal(SIGCHLD);
  siginfo_t info;
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGCHLD);
  return info;
}

int main(void) {
  block_signal(SIGCHLD);
  pid_t child = fork();
  if (child == 0) _exit(7);
  siginfo_t info = next();
  CHECK_EQUAL(info.si_pid, child);
  CHECK_EQUAL(info.si_code, CLD_EXITED);
  CHECK_EQUAL(info.si_status, 7);
  CHECK_EQUAL(waitpid(child, NULL, 0), child);
  child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  CHECK_EQUAL(kill(child, SIGTERM), 0);
  info = next();
  CHECK_EQUAL(info.si_pid, child);
  CHECK_EQUAL(info.si_code, CLD_KILLED);
  CHECK_EQUAL(info.si_status, SIGTERM);
  CHECK_EQUAL(waitpid(child, NULL, 0), child);
  return succeed();
}
