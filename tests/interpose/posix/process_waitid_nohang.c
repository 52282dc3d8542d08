// SPDX-License-Identifier: Apache-2.0
// waitid with WNOHANG and no ended child succeeds and sets the number to 0; a child ended by a
// signal is reported as such.
#define _GNU_SOURCE
#include "../child.h"

static int sleeps(int x) {
  (void)x;
  for (;;) pause();
  return 0;
}

int main(void) {
  siginfo_t info;
  const pid_t p = start_process(sleeps, 0);
  memset(&info, 0, sizeof info);
  CHECK_EQUAL(waitid(P_ALL, 0, &info, WEXITED | WNOHANG), 0);
  CHECK_EQUAL(info.si_pid, 0);
  CHECK_EQUAL(kill(p, SIGTERM), 0);
  CHECK_EQUAL(waitid(P_PID, (id_t)p, &info, WEXITED), 0);
  CHECK_EQUAL(info.si_code, CLD_KILLED);
  CHECK_EQUAL(info.si_status, SIGTERM);
  CHECK_EQUAL(waitid(P_PID, (id_t)p, &info, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
