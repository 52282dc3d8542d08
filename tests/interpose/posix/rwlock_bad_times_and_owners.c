// SPDX-License-Identifier: Apache-2.0
// The timed locks: a read-write lock always reports a bad time, a mutex only if it would wait; both
// report a bad clock; a thread that holds the lock for writing gets EDEADLK.
#include "../small.h"

static void* tries(void* lock) {
  CHECK_EQUAL(pthread_rwlock_tryrdlock(lock), EBUSY);
  CHECK_EQUAL(pthread_rwlock_trywrlock(lock), EBUSY);
  const struct timespec past = {1, 0};
  CHECK_EQUAL(pthread_rwlock_timedrdlock(lock, &past), ETIMEDOUT);
  CHECK_EQUAL(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &past), ETIMEDOUT);
  return NULL;
}

int main(void) {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const struct timespec bad = {0, 1000000000}, past = {1, 0};
  CHECK_EQUAL(pthread_rwlock_wrlock(&lock), 0);
  CHECK_EQUAL(pthread_rwlock_rdlock(&lock), EDEADLK);
  CHECK_EQUAL(pthread_rwlock_wrlock(&lock), EDEADLK);
  CHECK_EQUAL(pthread_rwlock_timedrdlock(&lock, &past), EDEADLK);
  elsewhere(tries, &lock);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  CHECK_EQUAL(pthread_mutex_timedlock(&mutex, &bad), 0);
  CHECK_EQUAL(pthread_mutex_timedlock(&mutex, &bad), EINVAL);
  CHECK_EQUAL(pthread_mutex_timedlock(&mutex, &past), ETIMEDOUT);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  CHECK_EQUAL(pthread_rwlock_timedrdlock(&lock, &past), 0);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  CHECK_EQUAL(pthread_rwlock_timedrdlock(&lock, &bad), EINVAL);
  CHECK_EQUAL(pthread_rwlock_timedwrlock(&lock, &bad), EINVAL);
  CHECK_EQUAL(pthread_rwlock_clockrdlock(&lock, CLOCK_BOOTTIME, &past), EINVAL);
  CHECK_EQUAL(pthread_mutex_clocklock(&mutex, CLOCK_BOOTTIME, &past), EINVAL);
  return succeed();
}
