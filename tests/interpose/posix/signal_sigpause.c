// SPDX-License-Identifier: Apache-2.0
// sigpause waits with one signal removed from the mask, runs its handler, and restores the mask.
#define _GNU_SOURCE
#include "../small.h"

static volatile sig_atomic_t caught, calls;
static void on_signal(int signo) {
  caught = signo;
  ++calls;
}

static int is_blocked(int signo) {
  sigset_t now;
  CHECK_EQUAL(sigprocmask(SIG_BLOCK, NULL, &now), 0);
  return sigismember(&now, signo);
}

int main(void) {
  signal(SIGUSR1, on_signal);
  signal(SIGUSR2, on_signal);
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGUSR1);
  sigaddset(&both, SIGUSR2);
  CHECK_EQUAL(sigprocmask(SIG_BLOCK, &both, NULL), 0);
  raise(SIGUSR1);
  raise(SIGUSR2);
  CHECK_EQUAL(calls, 0);
  CHECK_EQUAL(sigpause(SIGUSR2), -1);
  CHECK_EQUAL(errno, EINTR);
  CHECK_EQUAL(caught, SIGUSR2);
  CHECK_EQUAL(calls, 1);
  CHECK_EQUAL(is_blocked(SIGUSR2), 1);
  CHECK_EQUAL(sigpause(SIGUSR1), -1);
  CHECK_EQUAL(errno, EINTR);
  CHECK_EQUAL(caught, SIGUSR1);
  CHECK_EQUAL(calls, 2);
  CHECK_EQUAL(is_blocked(SIGUSR1), 1);
  CHECK_EQUAL(sigpause(1000), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
