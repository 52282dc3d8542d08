// SPDX-License-Identifier: Apache-2.0
// sigsuspend ends at once for a signal that is already pending, runs the handlers of all signals
// that its mask permits, and leaves the others pending.
#include "../small.h"

static volatile sig_atomic_t first, second, third;
static void note(int signo) {
  if (signo == SIGUSR1) ++first;
  if (signo == SIGUSR2) ++second;
  if (signo == SIGHUP) ++third;
}

int main(void) {
  sigset_t set, pending;
  sigemptyset(&set);
  const int signals[] = {SIGUSR1, SIGUSR2, SIGHUP};
  for (int i = 0; i < 3; ++i) {
    handle(signals[i], note, SA_RESTART);
    sigaddset(&set, signals[i]);
  }
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(raise(signals[i]), 0);
  const sigset_t only_hup = set_of_signal(SIGHUP);
  CHECK_EQUAL(sigsuspend(&only_hup), -1);
  CHECK_EQUAL(errno, EINTR);
  CHECK_EQUAL(first, 1);
  CHECK_EQUAL(second, 1);
  CHECK_EQUAL(third, 0);
  CHECK_EQUAL(sigpending(&pending), 0);
  CHECK_EQUAL(sigismember(&pending, SIGUSR1), 0);
  CHECK_EQUAL(sigismember(&pending, SIGHUP), 1);
  raise(SIGUSR1);
  CHECK_EQUAL(first, 1);
  sigset_t none;
  sigemptyset(&none);
  CHECK_EQUAL(sigsuspend(&none), -1);
  CHECK_EQUAL(first, 2);
  CHECK_EQUAL(third, 1);
  return succeed();
}
