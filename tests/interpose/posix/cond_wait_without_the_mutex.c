// SPDX-License-Identifier: Apache-2.0
// A condition wait with an error-checking mutex that the caller does not hold fails with EPERM; a
// recursive mutex held three times is held three times afterwards.
#include "../small.h"

static pthread_mutex_t checking, recursive;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void* tries(void* mutex) { return (void*)(long)pthread_mutex_trylock(mutex); }

int main(void) {
  pthread_mutexattr_t a;
  CHECK_EQUAL(pthread_mutexattr_init(&a), 0);
  CHECK_EQUAL(pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK), 0);
  CHECK_EQUAL(pthread_mutex_init(&checking, &a), 0);
  CHECK_EQUAL(pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE), 0);
  CHECK_EQUAL(pthread_mutex_init(&recursive, &a), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&checking), EPERM);
  CHECK_EQUAL(pthread_mutex_unlock(&recursive), EPERM);
  const struct timespec t = in_ns(CLOCK_REALTIME, 5 * MS);
  CHECK_EQUAL(pthread_cond_timedwait(&condition, &checking, &t), EPERM);
  CHECK_EQUAL(pthread_cond_wait(&condition, &checking), EPERM);
  CHECK_EQUAL(pthread_mutex_trylock(&checking), 0);
  CHECK_EQUAL(pthread_mutex_trylock(&checking), EBUSY);
  CHECK_EQUAL(pthread_mutex_lock(&checking), EDEADLK);
  CHECK_EQUAL(pthread_cond_timedwait(&condition, &checking, &t), ETIMEDOUT);
  CHECK_EQUAL(elsewhere(tries, &checking), EBUSY);
  CHECK_EQUAL(pthread_mutex_unlock(&checking), 0);
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(pthread_mutex_lock(&recursive), 0);
  for (int i = 0; i < 2; ++i) CHECK_EQUAL(pthread_mutex_unlock(&recursive), 0);
  CHECK_EQUAL(pthread_cond_timedwait(&condition, &recursive, &t), ETIMEDOUT);
  CHECK_EQUAL(pthread_mutex_unlock(&recursive), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&recursive), EPERM);
  return succeed();
}
