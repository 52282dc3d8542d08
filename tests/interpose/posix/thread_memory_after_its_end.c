// SPDX-License-Identifier: Apache-2.0
// native: no
// parallel: no
// An ending thread releases its arena, and the next thread that needs one takes it: in serial mode
// addresses are a function of the schedule, including these.
#include "../small.h"

static sem_t ends;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t sum;
static void* use_memory(void* x) {
  uint64_t mine = 0;
  void* kept[8];
  for (int i = 0; i < 8; ++i) {
    kept[i] = malloc(24 + (size_t)i * 8);
    mine = mine * 31 + (uintptr_t)kept[i];
  }
  for (int i = 0; i < 8; ++i) free(kept[i]);
  CHECK_EQUAL(pthread_mutex_lock(&lock), 0);
  sum = sum * 31 + mine;
  CHECK_EQUAL(pthread_mutex_unlock(&lock), 0);
  sem_post(&ends);
  return x;
}

int main(void) {
  sem_init(&ends, 0, 0);
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_t t;
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(pthread_create(&t, &detached, use_memory, NULL), 0);
  for (int round = 0; round < 1500; ++round) {
    CHECK_EQUAL(sem_wait(&ends), 0);
    CHECK_EQUAL(pthread_create(&t, &detached, use_memory, NULL), 0);
  }
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(sem_wait(&ends), 0);
  printf("%llx\n", (unsigned long long)sum);
  return succeed();
}
