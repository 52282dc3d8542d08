// SPDX-License-Identifier: Apache-2.0
// Mutex attributes return the values that were set, and refuse invalid ones.
#include "../small.h"

int main(void) {
  pthread_mutexattr_t a;
  int value = -1;
  CHECK_EQUAL(pthread_mutexattr_init(&a), 0);
  CHECK_EQUAL(pthread_mutexattr_gettype(&a, &value), 0);
  CHECK_EQUAL(value, PTHREAD_MUTEX_DEFAULT);
  CHECK_EQUAL(pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK), 0);
  CHECK_EQUAL(pthread_mutexattr_gettype(&a, &value), 0);
  CHECK_EQUAL(value, PTHREAD_MUTEX_ERRORCHECK);
  CHECK_EQUAL(pthread_mutexattr_settype(&a, 99), EINVAL);
  CHECK_EQUAL(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
  CHECK_EQUAL(pthread_mutexattr_getpshared(&a, &value), 0);
  CHECK_EQUAL(value, PTHREAD_PROCESS_SHARED);
  CHECK_EQUAL(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), 0);
  CHECK_EQUAL(pthread_mutexattr_getrobust(&a, &value), 0);
  CHECK_EQUAL(value, PTHREAD_MUTEX_ROBUST);
  CHECK_EQUAL(pthread_mutexattr_setrobust(&a, 99), EINVAL);
  CHECK_EQUAL(pthread_mutexattr_destroy(&a), 0);
  return succeed();
}
