// SPDX-License-Identifier: Apache-2.0
// Every kind of sleep lasts as long as requested.
#include "../small.h"

static void lasted(long long begun, long ms) { CHECK(now_ns(CLOCK_MONOTONIC) - begun >= ms * MS); }

int main(void) {
  long long begun = now_ns(CLOCK_MONOTONIC);
  CHECK_EQUAL(usleep(20000), 0);
  lasted(begun, 20);
  begun = now_ns(CLOCK_MONOTONIC);
  sleep_ms(15);
  lasted(begun, 15);
  begun = now_ns(CLOCK_MONOTONIC);
  const struct timespec t = timespec_of(15 * MS);
  CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL), 0);
  lasted(begun, 15);
  const struct timespec until = in_ns(CLOCK_MONOTONIC, 15 * MS);
  begun = now_ns(CLOCK_MONOTONIC);
  CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL), 0);
  CHECK(now_ns(CLOCK_MONOTONIC) >= until.tv_sec * 1000000000LL + until.tv_nsec);
  begun = now_ns(CLOCK_MONOTONIC);
  CHECK_EQUAL(sleep(1), 0);
  lasted(begun, 1000);
  return succeed();
}
