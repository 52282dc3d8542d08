// SPDX-License-Identifier: Apache-2.0
// A deadline in the past times out at once, in every call that takes one.
#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static const struct timespec past = {1, 0};

static void* try_all(void* x) {
  CHECK_EQUAL(pthread_mutex_timedlock(&mutex, &past), ETIMEDOUT);
  CHECK_EQUAL(pthread_rwlock_timedrdlock(&lock, &past), ETIMEDOUT);
  CHECK_EQUAL(pthread_rwlock_timedwrlock(&lock, &past), ETIMEDOUT);
  return x;
}

int main(void) {
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const long long begun = now_ns(CLOCK_MONOTONIC);
  pthread_mutex_lock(&mutex);
  pthread_rwlock_wrlock(&lock);
  CHECK_EQUAL(pthread_cond_timedwait(&condition, &mutex, &past), ETIMEDOUT);
  CHECK_EQUAL(sem_timedwait(&semaphore, &past), -1);
  CHECK_EQUAL(errno, ETIMEDOUT);
  elsewhere(try_all, NULL);
  CHECK_EQUAL(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &past, NULL), 0);
  CHECK(now_ns(CLOCK_MONOTONIC) - begun < 10000 * MS);
  return succeed();
}
