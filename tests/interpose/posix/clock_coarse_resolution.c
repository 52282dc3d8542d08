// SPDX-License-Identifier: Apache-2.0
// The coarse clocks have the resolution of the kernel's tick, the others one nanosecond.
#include "../small.h"

static long resolution(clockid_t clock) {
  struct timespec t = {-1, -1};
  CHECK_EQUAL(clock_getres(clock, &t), 0);
  CHECK_EQUAL(t.tv_sec, 0);
  return t.tv_nsec;
}

int main(void) {
  CHECK_EQUAL(resolution(CLOCK_REALTIME), 1);
  CHECK_EQUAL(resolution(CLOCK_MONOTONIC_RAW), 1);
  CHECK_EQUAL(resolution(CLOCK_THREAD_CPUTIME_ID), 1);
  const long coarse = resolution(CLOCK_REALTIME_COARSE);
  CHECK(coarse >= 1000000 && coarse <= 10000000);
  CHECK_EQUAL(resolution(CLOCK_MONOTONIC_COARSE), coarse);
  return succeed();
}
