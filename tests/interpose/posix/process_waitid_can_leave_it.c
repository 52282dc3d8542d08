// SPDX-License-Identifier: Apache-2.0
// waitid with WNOWAIT reports the child, which can be waited for again.
#define _GNU_SOURCE
#include "../child.h"

static int nine(int x) {
  (void)x;
  return 9;
}

int main(void) {
  siginfo_t info;
  const pid_t p = start_process(nine, 0);
  for (int i = 0; i < 2; ++i) {
    memset(&info, 0, sizeof info);
    CHECK_EQUAL(waitid(P_PID, (id_t)p, &info, WEXITED | WNOWAIT), 0);
    CHECK_EQUAL(info.si_signo, SIGCHLD);
    CHECK_EQUAL(info.si_code, CLD_EXITED);
    CHECK_EQUAL(info.si_pid, p);
    CHECK_EQUAL(info.si_status, 9);
  }
  CHECK_EQUAL(waitid(P_ALL, 0, &info, WEXITED), 0);
  CHECK_EQUAL(info.si_pid, p);
  CHECK_EQUAL(waitid(P_PID, (id_t)p, &info, WEXITED), -1);
  CHECK_EQUAL(errno, ECHILD);
  return succeed();
}
