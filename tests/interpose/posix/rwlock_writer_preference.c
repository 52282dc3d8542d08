// SPDX-License-Identifier: Apache-2.0
// With the writer-preferring kind a waiting writer keeps new readers out.
#include "../small.h"

static pthread_rwlock_t lock;
static int order;
static void* write_it(void* x) {
  CHECK_EQUAL(pthread_rwlock_wrlock(&lock), 0);
  order = order * 10 + 1;
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  return x;
}
static void* read_it(void* x) {
  CHECK_EQUAL(pthread_rwlock_rdlock(&lock), 0);
  order = order * 10 + 2;
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  return x;
}

int main(void) {
  pthread_rwlockattr_t a;
  pthread_rwlockattr_init(&a);
  CHECK_EQUAL(pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP), 0);
  CHECK_EQUAL(pthread_rwlock_init(&lock, &a), 0);
  CHECK_EQUAL(pthread_rwlock_rdlock(&lock), 0);
  const pthread_t w = start(write_it, NULL);
  // The writer waits as soon as another reader is refused.
  while (pthread_rwlock_tryrdlock(&lock) == 0) {
    CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
    sched_yield();
  }
  const pthread_t r = start(read_it, NULL);
  CHECK_EQUAL(order, 0);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  join(w);
  join(r);
  CHECK_EQUAL(order, 12);
  return succeed();
}
