// SPDX-License-Identifier: Apache-2.0
// Timed locks of a held lock time out, by either clock, and succeed if it is released in time.
#include "../small.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void* time_out(void* x) {
  struct timespec until = in_ns(CLOCK_REALTIME, 3 * MS);
  CHECK_EQUAL(pthread_rwlock_timedrdlock(&lock, &until), ETIMEDOUT);
  CHECK_EQUAL(pthread_rwlock_timedwrlock(&lock, &until), ETIMEDOUT);
  until = in_ns(CLOCK_MONOTONIC, 3 * MS);
  CHECK_EQUAL(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &until), ETIMEDOUT);
  CHECK_EQUAL(pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &until), ETIMEDOUT);
  sem_post(x);
  until = in_ns(CLOCK_REALTIME, 60000 * MS);
  CHECK_EQUAL(pthread_rwlock_timedwrlock(&lock, &until), 0);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  return NULL;
}

int main(void) {
  sem_t tried;
  sem_init(&tried, 0, 0);
  CHECK_EQUAL(pthread_rwlock_wrlock(&lock), 0);
  const pthread_t t = start(time_out, &tried);
  sem_wait(&tried);
  sleep_ms(3);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  join(t);
  return succeed();
}
