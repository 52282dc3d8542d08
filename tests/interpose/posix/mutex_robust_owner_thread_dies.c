// SPDX-License-Identifier: Apache-2.0
// The owner's thread ends: the next gets EOWNERDEAD, makes the mutex consistent, and all continues.
#include "../small.h"

static pthread_mutex_t mutex;
static void* die(void* x) {
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  return x;
}
static void* lock(void* x) {
  (void)x;
  const int error = pthread_mutex_lock(&mutex);
  if (error == 0) pthread_mutex_unlock(&mutex);
  return (void*)(long)error;
}

int main(void) {
  pthread_mutexattr_t a;
  pthread_mutexattr_init(&a);
  CHECK_EQUAL(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), 0);
  pthread_mutex_init(&mutex, &a);
  join(start(die, NULL));
  CHECK_EQUAL(pthread_mutex_lock(&mutex), EOWNERDEAD);
  CHECK_EQUAL(pthread_mutex_consistent(&mutex), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  CHECK_EQUAL(elsewhere(lock, NULL), 0);
  CHECK_EQUAL(pthread_mutex_consistent(&mutex), EINVAL);
  return succeed();
}
