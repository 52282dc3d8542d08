// SPDX-License-Identifier: Apache-2.0
// Ignoring a signal discards its pending instances.
#include "../small.h"

int main(void) {
  sigset_t set;
  block_signal(SIGUSR1);
  block_signal(SIGRTMIN);
  const union sigval v = {.sival_int = 1};
  raise(SIGUSR1);
  sigqueue(getpid(), SIGRTMIN, v);
  sigqueue(getpid(), SIGRTMIN, v);
  handle(SIGUSR1, SIG_IGN, 0);
  handle(SIGRTMIN, SIG_IGN, 0);
  sigpending(&set);
  CHECK_EQUAL(sigismember(&set, SIGUSR1), 0);
  CHECK_EQUAL(sigismember(&set, SIGRTMIN), 0);
  return succeed();
}
