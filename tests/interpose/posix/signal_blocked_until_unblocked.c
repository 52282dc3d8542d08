// SPDX-License-Identifier: Apache-2.0
// A blocked signal is pending, sigpending returns it, and it is delivered when it is unblocked.
#include "../small.h"

static volatile int rung;
static void ring(int signo) { rung += signo == SIGUSR1; }

int main(void) {
  sigset_t set;
  handle(SIGUSR1, ring, 0);
  block_signal(SIGUSR1);
  raise(SIGUSR1);
  CHECK_EQUAL(rung, 0);
  CHECK_EQUAL(sigpending(&set), 0);
  CHECK_EQUAL(sigismember(&set, SIGUSR1), 1);
  CHECK_EQUAL(sigismember(&set, SIGUSR2), 0);
  unblock_signal(SIGUSR1);
  CHECK_EQUAL(rung, 1);
  CHECK_EQUAL(sigpending(&set), 0);
  CHECK_EQUAL(sigismember(&set, SIGUSR1), 0);
  return succeed();
}
