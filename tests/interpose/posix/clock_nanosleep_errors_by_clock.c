// SPDX-License-Identifier: Apache-2.0
// clock_nanosleep: clocks that cannot sleep are not supported; the caller's own processor clock and
// unknown clocks are invalid.
#include "../small.h"

int main(void) {
  const struct timespec t = {0, MS}, negative = {-1, 0};
  CHECK_EQUAL(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &t, NULL), EINVAL);
  CHECK_EQUAL(clock_nanosleep(99, 0, &t, NULL), EINVAL);
  CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, 0, &negative, NULL), EINVAL);
  CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &negative, NULL), EINVAL);
  CHECK_EQUAL(clock_nanosleep(CLOCK_BOOTTIME, 0, &t, NULL), 0);
  CHECK_EQUAL(clock_nanosleep(CLOCK_TAI, 0, &t, NULL), 0);
  CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC_RAW, 0, &t, NULL), EOPNOTSUPP);
  CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC_COARSE, 0, &t, NULL), EOPNOTSUPP);
  CHECK_EQUAL(clock_nanosleep(CLOCK_REALTIME_COARSE, 0, &t, NULL), EOPNOTSUPP);
  return succeed();
}
