// SPDX-License-Identifier: Apache-2.0
// Three readers wait for a writer; its one unlock admits all three together: they meet at a barrier
// while they hold the lock.
#include "../small.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t all;

static void* read_it(void* x) {
  CHECK_EQUAL(pthread_rwlock_rdlock(&lock), 0);
  pthread_barrier_wait(&all);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  return x;
}

int main(void) {
  pthread_t t[3];
  pthread_barrier_init(&all, NULL, 3);
  CHECK_EQUAL(pthread_rwlock_wrlock(&lock), 0);
  for (int i = 0; i < 3; ++i) t[i] = start(read_it, NULL);
  sleep_ms(10);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  for (int i = 0; i < 3; ++i) join(t[i]);
  return succeed();
}
