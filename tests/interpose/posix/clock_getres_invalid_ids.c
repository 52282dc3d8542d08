// SPDX-License-Identifier: Apache-2.0
// clock_getres and clock_gettime of invalid clock numbers, and of processor clocks of no process,
// fail with EINVAL.
#include <limits.h>

#include "../small.h"

int main(void) {
  const clockid_t none[] = {INT_MIN, -2147483647, -1073743192, -1, -5, 50, INT_MAX};
  struct timespec t;
  clockid_t own = 0;
  for (unsigned i = 0; i < sizeof none / sizeof none[0]; ++i) {
    CHECK_EQUAL(clock_getres(none[i], &t), -1);
    CHECK_EQUAL(errno, EINVAL);
    CHECK_EQUAL(clock_gettime(none[i], &t), -1);
    CHECK_EQUAL(errno, EINVAL);
  }
  CHECK_EQUAL(clock_getcpuclockid(getpid(), &own), 0);
  CHECK_EQUAL(clock_getres(own, &t), 0);
  CHECK_EQUAL(pthread_getcpuclockid(pthread_self(), &own), 0);
  CHECK_EQUAL(clock_getres(own, &t), 0);
  return succeed();
}
