// SPDX-License-Identifier: Apache-2.0
// kill: no such process, no such signal, and signal 0 as a probe.
#define _GNU_SOURCE
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  CHECK_EQUAL(kill(0x3ffffffe, SIGTERM), -1);
  CHECK_EQUAL(errno, ESRCH);
  CHECK_EQUAL(kill(getpid(), 1000), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(kill(getpid(), 0), 0);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  CHECK_EQUAL(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
  CHECK_EQUAL(kill(child, 0), 0);  // a zombie still exists
  CHECK_EQUAL(waitpid(child, NULL, 0), child);
  CHECK_EQUAL(kill(child, 0), -1);
  CHECK_EQUAL(errno, ESRCH);
  return succeed();
}
