// SPDX-License-Identifier: Apache-2.0
// sigsuspend lets a blocked signal in, returns EINTR, and restores the old mask.
#include "../small.h"

static volatile int rung;
static void ring(int signo) { rung += signo == SIGUSR1; }

int main(void) {
  sigset_t none, mask;
  handle(SIGUSR1, ring, SA_RESTART);
  block_signal(SIGUSR1);
  raise(SIGUSR1);
  sigemptyset(&none);
  CHECK_EQUAL(sigsuspend(&none), -1);
  CHECK_EQUAL(errno, EINTR);
  CHECK_EQUAL(rung, 1);
  sigprocmask(SIG_BLOCK, NULL, &mask);
  CHECK_EQUAL(sigismember(&mask, SIGUSR1), 1);
  return succeed();
}
