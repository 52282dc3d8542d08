// SPDX-License-Identifier: Apache-2.0
// A timer of a microsecond does not stall the program: its signals merge, the overruns are counted,
// and it can be stopped. The same holds for a one-shot timer of a nanosecond.
#include "../small.h"

int main(void) {
  timer_t t;
  struct sigevent e;
  memset(&e, 0, sizeof e);
  e.sigev_notify = SIGEV_SIGNAL;
  e.sigev_signo = SIGRTMIN;
  block_signal(SIGRTMIN);
  const sigset_t set = set_of_signal(SIGRTMIN);
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, &e, &t), 0);
  const struct itimerspec once = {{0, 0}, {0, 1}}, fast = {{0, 1000}, {0, 1000}};
  const struct itimerspec stop = {{0, 0}, {0, 0}};
  siginfo_t info;
  CHECK_EQUAL(timer_settime(t, 0, &once, NULL), 0);
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGRTMIN);
  CHECK_EQUAL(info.si_code, SI_TIMER);
  CHECK_EQUAL(info.si_overrun, 0);
  CHECK_EQUAL(timer_getoverrun(t), 0);
  CHECK_EQUAL(timer_settime(t, 0, &fast, NULL), 0);
  sleep_ms(20);
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGRTMIN);
  CHECK(info.si_overrun >= 1000);
  CHECK_EQUAL(timer_getoverrun(t), info.si_overrun);
  sleep_ms(1);
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGRTMIN);
  CHECK_EQUAL(timer_settime(t, 0, &stop, NULL), 0);
  const struct timespec now = {0, 0};
  while (sigtimedwait(&set, NULL, &now) == SIGRTMIN) {
  }
  sleep_ms(1);
  CHECK_EQUAL(sigtimedwait(&set, NULL, &now), -1);
  CHECK_EQUAL(errno, EAGAIN);
  return succeed();
}
