// SPDX-License-Identifier: Apache-2.0
// A writer that locks again gets EDEADLK; several read locks need as many unlocks.
#include "../small.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void* try_write(void* x) {
  (void)x;
  const int error = pthread_rwlock_trywrlock(&lock);
  if (error == 0) pthread_rwlock_unlock(&lock);
  return (void*)(long)error;
}

int main(void) {
  CHECK_EQUAL(pthread_rwlock_wrlock(&lock), 0);
  CHECK_EQUAL(pthread_rwlock_wrlock(&lock), EDEADLK);
  CHECK_EQUAL(pthread_rwlock_rdlock(&lock), EDEADLK);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  CHECK_EQUAL(pthread_rwlock_rdlock(&lock), 0);
  CHECK_EQUAL(pthread_rwlock_rdlock(&lock), 0);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  CHECK_EQUAL(elsewhere(try_write, NULL), EBUSY);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  CHECK_EQUAL(elsewhere(try_write, NULL), 0);
  return succeed();
}
