// SPDX-License-Identifier: Apache-2.0
// Spin locks exclude; trylock of a held one returns EBUSY.
#include "../small.h"

static pthread_spinlock_t lock;
static int total;
static void* enter(void* x) {
  for (int i = 0; i < 100; ++i) {
    CHECK_EQUAL(pthread_spin_lock(&lock), 0);
    const int seen = total;
    if (i % 10 == 0) sched_yield();
    total = seen + 1;
    CHECK_EQUAL(pthread_spin_unlock(&lock), 0);
  }
  return x;
}
static void* try_it(void* x) {
  (void)x;
  return (void*)(long)pthread_spin_trylock(&lock);
}

int main(void) {
  pthread_t t[4];
  CHECK_EQUAL(pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE), 0);
  for (int i = 0; i < 4; ++i) t[i] = start(enter, NULL);
  for (int i = 0; i < 4; ++i) join(t[i]);
  CHECK_EQUAL(total, 400);
  CHECK_EQUAL(pthread_spin_lock(&lock), 0);
  CHECK_EQUAL(elsewhere(try_it, NULL), EBUSY);
  return succeed();
}
