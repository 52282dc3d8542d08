// SPDX-License-Identifier: Apache-2.0
// A program that only sleeps takes no turns meanwhile: an hour passes in one turn (under
// crane-solo, whose time is free; not run natively).
// native: no
#include "../small.h"

static void* sleep_an_hour(void* x) {
  const struct timespec hour = {3600, 0};
  const long long begun = now_ns(CLOCK_MONOTONIC);
  CHECK_EQUAL(nanosleep(&hour, NULL), 0);
  const long long slept = now_ns(CLOCK_MONOTONIC) - begun;
  CHECK(slept >= 3600 * 1000 * MS && slept < 3601 * 1000 * MS);
  return x;
}

int main(void) {
  const pthread_t a = start(sleep_an_hour, NULL), b = start(sleep_an_hour, NULL);
  join(a);
  join(b);
  return succeed();
}
