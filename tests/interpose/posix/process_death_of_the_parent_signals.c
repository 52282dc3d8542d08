// SPDX-License-Identifier: Apache-2.0
// PR_SET_PDEATHSIG: the requested signal comes when the parent ends; a child does not inherit the
// setting.
#define _GNU_SOURCE
#include <sys/prctl.h>

#include "../child.h"

static int ends[2], go[2];

static int grandchild(int unused) {
  int signo = -1;
  char byte;
  const sigset_t set = set_of_signal(SIGUSR1);
  CHECK_EQUAL(prctl(PR_GET_PDEATHSIG, &signo), 0);
  CHECK_EQUAL(signo, 0);
  block_signal(SIGUSR1);
  CHECK_EQUAL(prctl(PR_SET_PDEATHSIG, 77), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(prctl(PR_SET_PDEATHSIG, SIGUSR1), 0);
  CHECK_EQUAL(prctl(PR_GET_PDEATHSIG, &signo), 0);
  CHECK_EQUAL(signo, SIGUSR1);
  CHECK_EQUAL(write(go[1], "g", 1), 1);
  const struct timespec most = {10, 0};
  byte = sigtimedwait(&set, NULL, &most) == SIGUSR1 ? 'y' : 'n';
  CHECK_EQUAL(write(ends[1], &byte, 1), 1);
  return unused;
}

static int child(int unused) {
  char byte;
  CHECK_EQUAL(prctl(PR_SET_PDEATHSIG, SIGUSR2), 0);
  start_process(grandchild, 0);
  CHECK_EQUAL(read(go[0], &byte, 1), 1);
  return unused;
}

int main(void) {
  char byte = 0;
  CHECK_EQUAL(pipe(ends), 0);
  CHECK_EQUAL(pipe(go), 0);
  CHECK_EQUAL(status_of(start_process(child, 0)), 0);
  CHECK_EQUAL(read(ends[0], &byte, 1), 1);
  CHECK_EQUAL(byte, 'y');
  return succeed();
}
