// SPDX-License-Identifier: Apache-2.0
// timer_create with SIGEV_SIGNAL: one expiration, one signal, with SI_TIMER, value and no overrun.
#include "../small.h"

int main(void) {
  block_signal(SIGUSR1);
  struct sigevent e;
  memset(&e, 0, sizeof e);
  e.sigev_notify = SIGEV_SIGNAL;
  e.sigev_signo = SIGUSR1;
  e.sigev_value.sival_int = 42;
  timer_t t;
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, &e, &t), 0);
  const struct itimerspec in5 = {{0, 0}, {0, 5 * MS}};
  CHECK_EQUAL(timer_settime(t, 0, &in5, NULL), 0);
  const sigset_t set = set_of_signal(SIGUSR1);
  siginfo_t info;
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGUSR1);
  CHECK_EQUAL(info.si_code, SI_TIMER);
  CHECK_EQUAL(info.si_value.sival_int, 42);
  CHECK_EQUAL(timer_getoverrun(t), 0);
  struct itimerspec left;
  CHECK_EQUAL(timer_gettime(t, &left), 0);
  CHECK_EQUAL(left.it_value.tv_sec + left.it_value.tv_nsec, 0);
  CHECK_EQUAL(timer_delete(t), 0);
  return succeed();
}
