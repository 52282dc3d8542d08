// SPDX-License-Identifier: Apache-2.0
// Threads allocate and free, also in threads that handle signals and in destructors of keys, while
// they synchronise; the allocator's locks are never part of the schedule.
#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static long total;

static void* allocate(void* x) {
  pthread_setspecific(key, malloc(100));
  for (int i = 0; i < 200; ++i) {
    char* p = malloc(64 + (size_t)i * 37);
    p[0] = (char)i;
    pthread_mutex_lock(&mutex);
    p = realloc(p, 10000 + (size_t)i);
    total += p[0] == (char)i;
    pthread_mutex_unlock(&mutex);
    free(p);
  }
  return x;
}

int main(void) {
  pthread_t t[4];
  pthread_key_create(&key, free);
  for (int i = 0; i < 4; ++i) t[i] = start(allocate, NULL);
  for (int i = 0; i < 4; ++i) join(t[i]);
  CHECK_EQUAL(total, 800);
  return succeed();
}
