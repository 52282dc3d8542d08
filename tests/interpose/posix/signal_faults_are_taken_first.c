// SPDX-License-Identifier: Apache-2.0
// Of several pending signals, those that report a fault are taken before lower numbers.
#include "../small.h"

int main(void) {
  const int signals[] = {SIGHUP, SIGINT, SIGBUS, SIGFPE, SIGUSR1, SIGSEGV};
  const int taken[] = {SIGBUS, SIGFPE, SIGSEGV, SIGHUP, SIGINT, SIGUSR1};
  sigset_t set, pending;
  sigemptyset(&set);
  for (int i = 0; i < 6; ++i) sigaddset(&set, signals[i]);
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
  for (int i = 0; i < 6; ++i) CHECK_EQUAL(raise(signals[i]), 0);
  for (int i = 0; i < 6; ++i) {
    CHECK_EQUAL(sigpending(&pending), 0);
    CHECK_EQUAL(sigismember(&pending, taken[i]), 1);
    CHECK_EQUAL(sigwaitinfo(&set, NULL), taken[i]);
    CHECK_EQUAL(sigpending(&pending), 0);
    CHECK_EQUAL(sigismember(&pending, taken[i]), 0);
  }
  return succeed();
}
