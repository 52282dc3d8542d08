// SPDX-License-Identifier: Apache-2.0
// ITIMER_PROF and ITIMER_VIRTUAL count processor time: they expire while the process works.
#define _GNU_SOURCE
#include <sys/time.h>

#include "../small.h"

static volatile int prof, virtual;
static void ring(int signo) {
  if (signo == SIGPROF) ++prof;
  if (signo == SIGVTALRM) ++virtual;
}

int main(void) {
  handle(SIGPROF, ring, SA_RESTART);
  handle(SIGVTALRM, ring, SA_RESTART);
  const struct itimerval v = {{0, 5000}, {0, 5000}}, none = {{0, 0}, {0, 0}};
  struct itimerval left;
  CHECK_EQUAL(setitimer(ITIMER_PROF, &v, NULL), 0);
  CHECK_EQUAL(setitimer(ITIMER_VIRTUAL, &v, NULL), 0);
  CHECK_EQUAL(getitimer(ITIMER_PROF, &left), 0);
  CHECK_EQUAL(left.it_interval.tv_usec, 5000);
  for (volatile long i = 0; prof < 2 || virtual < 1; ++i) {
    if (i % 100000 == 0) getppid(), sched_yield();
    if (i % 1000 == 0) clock();
  }
  CHECK_EQUAL(setitimer(ITIMER_PROF, &none, &left), 0);
  CHECK_EQUAL(setitimer(ITIMER_VIRTUAL, &none, NULL), 0);
  CHECK_EQUAL(getitimer(ITIMER_PROF, &left), 0);
  CHECK_EQUAL(left.it_value.tv_sec + left.it_value.tv_usec, 0);
  return succeed();
}
