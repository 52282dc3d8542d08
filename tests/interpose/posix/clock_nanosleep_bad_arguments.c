// SPDX-License-Identifier: Apache-2.0
// clock_nanosleep returns its error and does not change errno.
#include "../small.h"

int main(void) {
  const struct timespec bad = {0, 1000000000}, negative = {-1, 0}, none = {0, 0};
  errno = 0;
  CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, 0, &bad, NULL), EINVAL);
  CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, 0, &negative, NULL), EINVAL);
  CHECK_EQUAL(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &none, NULL), EINVAL);
  CHECK_EQUAL(clock_nanosleep(12345, 0, &none, NULL), EINVAL);
  CHECK_EQUAL(errno, 0);
  CHECK_EQUAL(nanosleep(&bad, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
