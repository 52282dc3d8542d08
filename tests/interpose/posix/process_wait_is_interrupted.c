// SPDX-License-Identifier: Apache-2.0
// A handler without SA_RESTART ends waitpid with EINTR; with it the wait continues.
#define _GNU_SOURCE
#include "../child.h"

static volatile sig_atomic_t caught;
static void note(int signo) { caught = signo; }

static int signals_parent(int x) {
  sleep_ms(20);
  kill(getppid(), SIGUSR1);
  sleep_ms(20);
  return x;
}

int main(void) {
  int status;
  handle(SIGUSR1, note, 0);
  pid_t p = start_process(signals_parent, 6);
  CHECK_EQUAL(waitpid(p, &status, 0), -1);
  CHECK_EQUAL(errno, EINTR);
  CHECK_EQUAL(caught, SIGUSR1);
  CHECK_EQUAL(waitpid(p, &status, 0), p);
  caught = 0;
  handle(SIGUSR1, note, SA_RESTART);
  p = start_process(signals_parent, 7);
  CHECK_EQUAL(waitpid(p, &status, 0), p);
  CHECK_EQUAL(caught, SIGUSR1);
  CHECK_EQUAL(WEXITSTATUS(status), 7);
  return succeed();
}
