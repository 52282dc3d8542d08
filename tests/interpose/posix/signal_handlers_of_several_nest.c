// SPDX-License-Identifier: Apache-2.0
// Several signals are unblocked at once: the frame of the lowest is made first, so the handler of
// the highest runs first; while each handler runs, the later ones have not run.
#include "../small.h"

static volatile sig_atomic_t order[8], count;
static void note(int signo) { order[count++] = signo; }

int main(void) {
  const int signals[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGTERM, SIGRTMIN};
  sigset_t set;
  sigemptyset(&set);
  for (int i = 0; i < 5; ++i) {
    handle(signals[i], note, 0);
    sigaddset(&set, signals[i]);
  }
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
  for (int i = 0; i < 5; ++i) CHECK_EQUAL(raise(signals[i]), 0);
  CHECK_EQUAL(count, 0);
  CHECK_EQUAL(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
  CHECK_EQUAL(count, 5);
  for (int i = 0; i < 5; ++i) CHECK_EQUAL(order[i], signals[4 - i]);
  return succeed();
}
