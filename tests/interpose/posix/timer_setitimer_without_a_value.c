// SPDX-License-Identifier: Apache-2.0
// setitimer stops the timer for a value of zero, and also for a null pointer; bad numbers are
// refused and change nothing.
#include <sys/time.h>

#include "../small.h"

int main(void) {
  const struct itimerval v = {{7, 0}, {100, 0}}, zero = {{9, 0}, {0, 0}};
  struct itimerval old, now;
  CHECK_EQUAL(setitimer(ITIMER_REAL, &v, NULL), 0);
  const struct itimerval bad = {{0, 0}, {0, 1000000}}, negative = {{0, 0}, {-1, 0}};
  CHECK_EQUAL(setitimer(ITIMER_REAL, &bad, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(setitimer(ITIMER_REAL, &negative, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(syscall(38 /* setitimer */, 3, &v, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(getitimer(ITIMER_REAL, &now), 0);
  CHECK_EQUAL(now.it_interval.tv_sec, 7);
  CHECK(now.it_value.tv_sec > 90);
  CHECK_EQUAL(setitimer(ITIMER_REAL, &zero, &old), 0);
  CHECK_EQUAL(old.it_interval.tv_sec, 7);
  CHECK_EQUAL(getitimer(ITIMER_REAL, &now), 0);
  CHECK_EQUAL(now.it_value.tv_sec, 0);
  CHECK_EQUAL(now.it_interval.tv_sec, 0);
  CHECK_EQUAL(setitimer(ITIMER_REAL, &v, NULL), 0);
  CHECK_EQUAL(setitimer(ITIMER_REAL, NULL, &old), 0);
  CHECK(old.it_value.tv_sec > 90);
  CHECK_EQUAL(getitimer(ITIMER_REAL, &now), 0);
  CHECK_EQUAL(now.it_value.tv_sec, 0);
  return succeed();
}
