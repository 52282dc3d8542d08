// SPDX-License-Identifier: Apache-2.0
// clock_settime: clocks that cannot be set and invalid times are errors before privileges are
// checked; an ordinary user may not set the clock.
#include <sys/time.h>

#include "../child.h"

static int as_user(int unused) {
  if (geteuid() == 0) CHECK_EQUAL(setuid(65534), 0);
  struct timespec t;
  CHECK_EQUAL(clock_gettime(CLOCK_REALTIME, &t), 0);
  CHECK_EQUAL(clock_settime(CLOCK_REALTIME, &t), -1);
  CHECK_EQUAL(errno, EPERM);
  const struct timeval v = {t.tv_sec, 0};
  CHECK_EQUAL(settimeofday(&v, NULL), -1);
  CHECK_EQUAL(errno, EPERM);
  const struct timeval step = {0, 1};
  CHECK_EQUAL(adjtime(&step, NULL), -1);
  CHECK_EQUAL(errno, EPERM);
  return unused;
}

int main(void) {
  const struct timespec t = {1000, 0}, bad = {1000, 1000000000}, negative = {-1, 0};
  CHECK_EQUAL(status_of(start_process(as_user, 0)), 0);
  CHECK_EQUAL(clock_settime(CLOCK_PROCESS_CPUTIME_ID, &t), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(clock_settime(CLOCK_MONOTONIC, &t), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(clock_settime(CLOCK_BOOTTIME, &t), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(clock_settime(99, &t), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(clock_settime(CLOCK_REALTIME, &bad), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(clock_settime(CLOCK_REALTIME, &negative), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
