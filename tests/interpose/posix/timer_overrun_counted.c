// SPDX-License-Identifier: Apache-2.0
// Expirations while the signal is pending count as overruns of the one that is delivered.
#include "../small.h"

int main(void) {
  block_signal(SIGALRM);
  const sigset_t set = set_of_signal(SIGALRM);
  timer_t t;
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, NULL, &t), 0);
  const struct itimerspec v = {{0, 2 * MS}, {0, 2 * MS}}, never = {{0, 0}, {0, 0}};
  CHECK_EQUAL(timer_settime(t, 0, &v, NULL), 0);
  sleep_ms(21);
  siginfo_t info;
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGALRM);
  const int overruns = timer_getoverrun(t);
  CHECK(overruns >= 9);
  CHECK_EQUAL(info.si_overrun, overruns);
  CHECK_EQUAL(timer_settime(t, 0, &never, NULL), 0);
  return succeed();
}
