// SPDX-License-Identifier: Apache-2.0
// Every clock has a resolution; others are refused.
#include "../small.h"

int main(void) {
  const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME,
                              CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
  for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; ++i) {
    struct timespec t = {9, 9};
    CHECK_EQUAL(clock_getres(clocks[i], &t), 0);
    CHECK_EQUAL(t.tv_sec, 0);
    CHECK(t.tv_nsec > 0);
    CHECK_EQUAL(clock_getres(clocks[i], NULL), 0);
  }
  struct timespec t;
  CHECK_EQUAL(clock_getres(12345, &t), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(clock_gettime(12345, &t), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
