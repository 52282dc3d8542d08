// SPDX-License-Identifier: Apache-2.0
// sighold, sigrelse, sigignore, sigset: the older interface.
#include "../small.h"

static volatile int rung;
static void ring(int signo) { rung += signo == SIGUSR1; }

int main(void) {
  CHECK(sigset(SIGUSR1, ring) == SIG_DFL);
  CHECK_EQUAL(sighold(SIGUSR1), 0);
  raise(SIGUSR1);
  CHECK_EQUAL(rung, 0);
  CHECK_EQUAL(sigrelse(SIGUSR1), 0);
  CHECK_EQUAL(rung, 1);
  CHECK(sigset(SIGUSR1, SIG_HOLD) == ring);
  CHECK(sigset(SIGUSR1, ring) == SIG_HOLD);
  CHECK_EQUAL(sigignore(SIGUSR1), 0);
  raise(SIGUSR1);
  CHECK_EQUAL(rung, 1);
  CHECK(sigset(1000, ring) == SIG_ERR);
  return succeed();
}
