// SPDX-License-Identifier: Apache-2.0
// getitimer counts down while the program sleeps, ualarm returns the microseconds that were left,
// and a child has none of its parent's timers.
#include <sys/time.h>

#include "../child.h"

static int has_none(int unused) {
  struct itimerval now;
  CHECK_EQUAL(getitimer(ITIMER_REAL, &now), 0);
  CHECK_EQUAL(now.it_value.tv_sec, 0);
  CHECK_EQUAL(now.it_value.tv_usec, 0);
  CHECK_EQUAL(alarm(0), 0);
  return unused;
}

static long left(void) {
  struct itimerval now;
  CHECK_EQUAL(getitimer(ITIMER_REAL, &now), 0);
  return now.it_value.tv_sec * 1000000 + now.it_value.tv_usec;
}

int main(void) {
  const struct itimerval v = {{4, 5}, {50, 0}};
  CHECK_EQUAL(setitimer(ITIMER_REAL, &v, NULL), 0);
  const long first = left();
  CHECK(first <= 50000000 && first > 40000000);
  sleep_ms(20);
  CHECK(left() <= first - 20000);
  CHECK_EQUAL(status_of(start_process(has_none, 0)), 0);
  CHECK(left() > 0);
  struct itimerval now;
  CHECK_EQUAL(getitimer(ITIMER_REAL, &now), 0);
  CHECK_EQUAL(now.it_interval.tv_sec, 4);
  CHECK_EQUAL(now.it_interval.tv_usec, 5);
  const unsigned rest = ualarm(900000, 0);
  CHECK(rest > 40000000 && rest <= 50000000);
  const unsigned short_rest = ualarm(0, 0);
  CHECK(short_rest > 0 && short_rest <= 900000);
  CHECK_EQUAL(left(), 0);
  return succeed();
}
