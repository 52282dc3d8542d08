// SPDX-License-Identifier: Apache-2.0
// waitid: WSTOPPED, WCONTINUED and WEXITED each report their own event; with WNOWAIT it can be
// reported again.
#include <sys/wait.h>

#include "../small.h"

static void expect(pid_t child, int options, int code, int status) {
  siginfo_t info;
  memset(&info, 0, sizeof info);
  CHECK_EQUAL(waitid(P_PID, (id_t)child, &info, options), 0);
  CHECK_EQUAL(info.si_signo, SIGCHLD);
  CHECK_EQUAL(info.si_pid, child);
  CHECK_EQUAL(info.si_code, code);
  CHECK_EQUAL(info.si_status, status);
}

static void expect_nothing(pid_t child, int options) {
  siginfo_t info;
  memset(&info, 0x55, sizeof info);
  CHECK_EQUAL(waitid(P_PID, (id_t)child, &info, options | WNOHANG), 0);
  CHECK_EQUAL(info.si_pid, 0);
}

int main(void) {
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(42);
  }
  expect(child, WSTOPPED | WNOWAIT, CLD_STOPPED, SIGSTOP);
  expect(child, WSTOPPED | WEXITED, CLD_STOPPED, SIGSTOP);
  expect_nothing(child, WSTOPPED);
  expect_nothing(child, WCONTINUED | WEXITED);
  CHECK_EQUAL(kill(child, SIGCONT), 0);
  expect(child, WEXITED | WNOWAIT, CLD_EXITED, 42);
  expect(child, WEXITED | WNOWAIT, CLD_EXITED, 42);
  expect(child, WEXITED | WCONTINUED, CLD_EXITED, 42);
  siginfo_t info;
  CHECK_EQUAL(waitid(P_ALL, 0, &info, WEXITED), -1);
  CHECK_EQUAL(errno, ECHILD);
  return succeed();
}
