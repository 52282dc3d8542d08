// SPDX-License-Identifier: Apache-2.0
// Destructors of thread-specific data lock a mutex, sleep and signal; a join waits for them.
#include "../small.h"

static pthread_key_t key;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int destroyed;

static void destroy(void* x) {
  pthread_mutex_lock(&mutex);
  sleep_ms(1);
  destroyed += (int)(long)x;
  pthread_mutex_unlock(&mutex);
}
static void* set(void* x) {
  CHECK_EQUAL(pthread_setspecific(key, x), 0);
  return NULL;
}

int main(void) {
  pthread_t t[4];
  CHECK_EQUAL(pthread_key_create(&key, destroy), 0);
  for (long i = 0; i < 4; ++i) t[i] = start(set, (void*)(i + 1));
  for (int i = 0; i < 4; ++i) join(t[i]);
  CHECK_EQUAL(destroyed, 10);
  return succeed();
}
