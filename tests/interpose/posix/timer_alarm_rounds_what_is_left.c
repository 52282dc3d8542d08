// SPDX-License-Identifier: Apache-2.0
// alarm returns the time left in whole seconds: rounded to the nearest, but never to 0.
#include <sys/time.h>

#include "../small.h"

static unsigned left_of(long seconds, long us) {
  const struct itimerval v = {{0, 0}, {seconds, us}};
  CHECK_EQUAL(setitimer(ITIMER_REAL, &v, NULL), 0);
  return alarm(0);
}

int main(void) {
  CHECK_EQUAL(alarm(0), 0);
  CHECK_EQUAL(left_of(20, 300000), 20);
  CHECK_EQUAL(left_of(20, 900000), 21);
  CHECK_EQUAL(left_of(0, 300000), 1);
  CHECK_EQUAL(alarm(100), 0);
  CHECK_EQUAL(alarm(50), 100);
  struct itimerval now;
  CHECK_EQUAL(getitimer(ITIMER_REAL, &now), 0);
  CHECK_EQUAL(now.it_interval.tv_sec, 0);
  CHECK(now.it_value.tv_sec >= 45 && now.it_value.tv_sec <= 50);
  CHECK_EQUAL(alarm(0), 50);
  CHECK_EQUAL(alarm(0), 0);
  return succeed();
}
