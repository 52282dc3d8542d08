// SPDX-License-Identifier: Apache-2.0
// A recursive mutex held twice stays held during a condition wait: the wait releases one level
// only, so no other thread gets it (and the wait times out).
#include "../small.h"

static pthread_mutex_t mutex;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void* try_lock(void* x) {
  (void)x;
  sleep_ms(5);
  return (void*)(long)pthread_mutex_trylock(&mutex);
}

int main(void) {
  pthread_mutexattr_t a;
  pthread_mutexattr_init(&a);
  pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&mutex, &a);
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&mutex);
  const pthread_t t = start(try_lock, NULL);
  const struct timespec until = in_ns(CLOCK_REALTIME, 20 * MS);
  CHECK_EQUAL(pthread_cond_timedwait(&condition, &mutex, &until), ETIMEDOUT);
  CHECK_EQUAL((long)join(t), EBUSY);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), EPERM);
  return succeed();
}
