// SPDX-License-Identifier: Apache-2.0
// trylock of a held mutex returns EBUSY, of a recursive one held by the caller 0.
#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void* try_it(void* m) { return (void*)(long)pthread_mutex_trylock(m); }

int main(void) {
  CHECK_EQUAL(pthread_mutex_trylock(&mutex), 0);
  CHECK_EQUAL(pthread_mutex_trylock(&mutex), EBUSY);
  CHECK_EQUAL(elsewhere(try_it, &mutex), EBUSY);
  CHECK_EQUAL(pthread_mutex_trylock(&recursive), 0);
  CHECK_EQUAL(pthread_mutex_trylock(&recursive), 0);
  CHECK_EQUAL(elsewhere(try_it, &recursive), EBUSY);
  pthread_mutex_unlock(&recursive);
  CHECK_EQUAL(elsewhere(try_it, &recursive), EBUSY);
  pthread_mutex_unlock(&recursive);
  CHECK_EQUAL(elsewhere(try_it, &recursive), 0);
  return succeed();
}
