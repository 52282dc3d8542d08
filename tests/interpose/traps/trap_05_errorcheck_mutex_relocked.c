// SPDX-License-Identifier: Apache-2.0
// An error-checking mutex locked again by its owner: EDEADLK at once, from every way to lock it.
#include "../small.h"

int main(void) {
  pthread_mutexattr_t a;
  pthread_mutex_t m;
  pthread_mutexattr_init(&a);
  pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&m, &a);
  const struct timespec wall = in_ns(CLOCK_REALTIME, 1000 * MS);
  const struct timespec monotonic = in_ns(CLOCK_MONOTONIC, 1000 * MS);
  CHECK_EQUAL(pthread_mutex_lock(&m), 0);
  CHECK_EQUAL(pthread_mutex_lock(&m), EDEADLK);
  CHECK_EQUAL(pthread_mutex_timedlock(&m, &wall), EDEADLK);
  CHECK_EQUAL(pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &monotonic), EDEADLK);
  CHECK_EQUAL(pthread_mutex_trylock(&m), EBUSY);
  CHECK_EQUAL(pthread_mutex_unlock(&m), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&m), EPERM);
  return succeed();
}
