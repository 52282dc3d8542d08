// SPDX-License-Identifier: Apache-2.0
// The interval timers of processor time: each has its own signal, they read back separately from
// ITIMER_REAL, and an interval stays readable when the value is zero.
#include <sys/time.h>

#include "../small.h"

static volatile sig_atomic_t virtual_ones, prof_ones;
static void note(int signo) {
  if (signo == SIGVTALRM) ++virtual_ones;
  if (signo == SIGPROF) ++prof_ones;
}

int main(void) {
  handle(SIGVTALRM, note, 0);
  handle(SIGPROF, note, 0);
  const struct itimerval v = {{0, 2000}, {0, 2000}}, stop = {{3, 0}, {0, 0}};
  struct itimerval now;
  CHECK_EQUAL(setitimer(ITIMER_VIRTUAL, &v, NULL), 0);
  CHECK_EQUAL(setitimer(ITIMER_PROF, &v, NULL), 0);
  while (virtual_ones < 3 || prof_ones < 3) now_ns(CLOCK_PROCESS_CPUTIME_ID);
  CHECK_EQUAL(getitimer(ITIMER_REAL, &now), 0);
  CHECK_EQUAL(now.it_value.tv_usec, 0);
  CHECK_EQUAL(getitimer(ITIMER_PROF, &now), 0);
  CHECK_EQUAL(now.it_interval.tv_usec, 2000);
  CHECK_EQUAL(setitimer(ITIMER_VIRTUAL, &stop, NULL), 0);
  CHECK_EQUAL(setitimer(ITIMER_PROF, &stop, NULL), 0);
  CHECK_EQUAL(getitimer(ITIMER_PROF, &now), 0);
  CHECK_EQUAL(now.it_value.tv_sec, 0);
  CHECK_EQUAL(now.it_value.tv_usec, 0);
  CHECK_EQUAL(now.it_interval.tv_sec, 3);
  return succeed();
}
