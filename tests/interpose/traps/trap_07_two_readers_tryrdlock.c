// SPDX-License-Identifier: Apache-2.0
// Two readers at once: the second tryrdlock succeeds, and a writer's try does not.
#include "../small.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void* try_read(void* x) {
  (void)x;
  const int error = pthread_rwlock_tryrdlock(&lock);
  if (error == 0) pthread_rwlock_unlock(&lock);
  return (void*)(long)error;
}
static void* try_write(void* x) {
  (void)x;
  return (void*)(long)pthread_rwlock_trywrlock(&lock);
}

int main(void) {
  CHECK_EQUAL(pthread_rwlock_tryrdlock(&lock), 0);
  CHECK_EQUAL(elsewhere(try_read, NULL), 0);
  CHECK_EQUAL(elsewhere(try_write, NULL), EBUSY);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  CHECK_EQUAL(pthread_rwlock_trywrlock(&lock), 0);
  CHECK_EQUAL(elsewhere(try_read, NULL), EBUSY);
  return succeed();
}
