// SPDX-License-Identifier: Apache-2.0
// timer_settime returns the old setting; zero disarms.
#include "../small.h"

int main(void) {
  timer_t t;
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, NULL, &t), 0);
  const struct itimerspec hour = {{7, 0}, {3600, 0}}, never = {{0, 0}, {0, 0}};
  struct itimerspec old;
  CHECK_EQUAL(timer_settime(t, 0, &hour, &old), 0);
  CHECK_EQUAL(old.it_value.tv_sec, 0);
  CHECK_EQUAL(timer_settime(t, 0, &never, &old), 0);
  CHECK_EQUAL(old.it_interval.tv_sec, 7);
  CHECK(old.it_value.tv_sec == 3599 || old.it_value.tv_sec == 3600);
  CHECK_EQUAL(timer_gettime(t, &old), 0);
  CHECK_EQUAL(old.it_value.tv_sec, 0);
  return succeed();
}
