// SPDX-License-Identifier: Apache-2.0
// pthread_cond_clockwait times out by the clock of its argument, whatever the attributes are.
#include "../small.h"

int main(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  struct timespec until = in_ns(CLOCK_MONOTONIC, 10 * MS);
  CHECK_EQUAL(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &until), ETIMEDOUT);
  CHECK(now_ns(CLOCK_MONOTONIC) >= until.tv_sec * 1000000000LL + until.tv_nsec);
  until = in_ns(CLOCK_REALTIME, 10 * MS);
  CHECK_EQUAL(pthread_cond_clockwait(&condition, &mutex, CLOCK_REALTIME, &until), ETIMEDOUT);
  CHECK(now_ns(CLOCK_REALTIME) >= until.tv_sec * 1000000000LL + until.tv_nsec);
  CHECK_EQUAL(pthread_cond_clockwait(&condition, &mutex, CLOCK_THREAD_CPUTIME_ID, &until), EINVAL);
  return succeed();
}
