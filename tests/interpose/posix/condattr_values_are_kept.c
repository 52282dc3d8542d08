// SPDX-License-Identifier: Apache-2.0
// Condition attributes return the values that were set.
#include "../small.h"

int main(void) {
  pthread_condattr_t a;
  int shared = -1;
  clockid_t clock = -1;
  CHECK_EQUAL(pthread_condattr_init(&a), 0);
  CHECK_EQUAL(pthread_condattr_getpshared(&a, &shared), 0);
  CHECK_EQUAL(shared, PTHREAD_PROCESS_PRIVATE);
  CHECK_EQUAL(pthread_condattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
  CHECK_EQUAL(pthread_condattr_getpshared(&a, &shared), 0);
  CHECK_EQUAL(shared, PTHREAD_PROCESS_SHARED);
  CHECK_EQUAL(pthread_condattr_setpshared(&a, 99), EINVAL);
  CHECK_EQUAL(pthread_condattr_setclock(&a, CLOCK_MONOTONIC), 0);
  CHECK_EQUAL(pthread_condattr_getclock(&a, &clock), 0);
  CHECK_EQUAL(clock, CLOCK_MONOTONIC);
  CHECK_EQUAL(pthread_condattr_destroy(&a), 0);
  return succeed();
}
