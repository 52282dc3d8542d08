// SPDX-License-Identifier: Apache-2.0
// A new thread has its creator's signal mask and no pending signals.
#include "../small.h"

static void* look(void* x) {
  sigset_t mask, pending;
  pthread_sigmask(SIG_BLOCK, NULL, &mask);
  CHECK_EQUAL(sigismember(&mask, SIGUSR1), 1);
  CHECK_EQUAL(sigismember(&mask, SIGUSR2), 0);
  sigpending(&pending);
  CHECK_EQUAL(sigismember(&pending, SIGUSR1), 0);
  return x;
}

int main(void) {
  block_signal(SIGUSR1);
  pthread_kill(pthread_self(), SIGUSR1);
  join(start(look, NULL));
  return succeed();
}
