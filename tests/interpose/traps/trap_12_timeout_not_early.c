// SPDX-License-Identifier: Apache-2.0
// A condition's time-out of 20 ms comes after 20 ms, by the clock of the deadline.
#include "../small.h"

int main(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  const struct timespec until = in_ns(CLOCK_REALTIME, 20 * MS);
  CHECK_EQUAL(pthread_cond_timedwait(&condition, &mutex, &until), ETIMEDOUT);
  CHECK(now_ns(CLOCK_REALTIME) >= until.tv_sec * 1000000000LL + until.tv_nsec);
  return succeed();
}
