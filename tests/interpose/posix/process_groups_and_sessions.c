// SPDX-License-Identifier: Apache-2.0
// A child is in its parent's group until it leaves; a signal to a group reaches its members.
#define _GNU_SOURCE
#include "../child.h"

static int child(int to) {
  CHECK_EQUAL(getpgid(0), getpgid(getppid()));
  const pid_t group = setsid();
  CHECK_EQUAL(group, getpid());
  CHECK_EQUAL(getsid(0), group);
  CHECK_EQUAL(getpgrp(), group);
  CHECK_EQUAL(setsid(), -1);
  CHECK_EQUAL(errno, EPERM);
  CHECK_EQUAL(write(to, "r", 1), 1);
  for (;;) pause();
  return 0;
}

int main(void) {
  int fds[2];
  char c;
  CHECK_EQUAL(pipe(fds), 0);
  const pid_t p = start_process(child, fds[1]);
  CHECK_EQUAL(read(fds[0], &c, 1), 1);
  CHECK_EQUAL(getpgid(p), p);
  CHECK_EQUAL(kill(-p, SIGTERM), 0);
  CHECK_EQUAL(WTERMSIG(status_of(p)), SIGTERM);
  CHECK_EQUAL(kill(-p, SIGTERM), -1);
  CHECK_EQUAL(errno, ESRCH);
  return succeed();
}
