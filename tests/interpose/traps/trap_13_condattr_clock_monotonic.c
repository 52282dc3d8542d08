// SPDX-License-Identifier: Apache-2.0
// The clock of the attributes is the clock of the deadline: a monotonic time is not taken for a
// calendar time (which would be in the distant past), nor a calendar time for a monotonic one.
#include "../small.h"

int main(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition;
  pthread_condattr_t a;
  clockid_t clock = -1;
  pthread_condattr_init(&a);
  CHECK_EQUAL(pthread_condattr_getclock(&a, &clock), 0);
  CHECK_EQUAL(clock, CLOCK_REALTIME);
  CHECK_EQUAL(pthread_condattr_setclock(&a, CLOCK_PROCESS_CPUTIME_ID), EINVAL);
  CHECK_EQUAL(pthread_condattr_setclock(&a, CLOCK_MONOTONIC), 0);
  CHECK_EQUAL(pthread_cond_init(&condition, &a), 0);
  pthread_mutex_lock(&mutex);
  const struct timespec until = in_ns(CLOCK_MONOTONIC, 20 * MS);
  CHECK_EQUAL(pthread_cond_timedwait(&condition, &mutex, &until), ETIMEDOUT);
  CHECK(now_ns(CLOCK_MONOTONIC) >= until.tv_sec * 1000000000LL + until.tv_nsec);
  return succeed();
}
