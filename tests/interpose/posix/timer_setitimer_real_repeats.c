// SPDX-License-Identifier: Apache-2.0
// ITIMER_REAL repeats at its interval.
#define _GNU_SOURCE
#include <sys/time.h>

#include "../small.h"

static volatile int rung;
static void ring(int signo) { rung += signo == SIGALRM; }

int main(void) {
  handle(SIGALRM, ring, 0);
  const struct itimerval v = {{0, 5000}, {0, 5000}}, none = {{0, 0}, {0, 0}};
  const long long begun = now_ns(CLOCK_MONOTONIC);
  CHECK_EQUAL(setitimer(ITIMER_REAL, &v, NULL), 0);
  while (rung < 4) pause();
  CHECK(now_ns(CLOCK_MONOTONIC) - begun >= 20 * MS);
  CHECK_EQUAL(setitimer(ITIMER_REAL, &none, NULL), 0);
  CHECK_EQUAL(setitimer((__itimer_which_t)9, &none, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
