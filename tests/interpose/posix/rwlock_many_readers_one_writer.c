// SPDX-License-Identifier: Apache-2.0
// Readers share the lock, a writer excludes all others.
#include "../small.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int readers, writers, most_readers;
static void* read_it(void* x) {
  for (int i = 0; i < 20; ++i) {
    CHECK_EQUAL(pthread_rwlock_rdlock(&lock), 0);
    const int now = __atomic_add_fetch(&readers, 1, __ATOMIC_SEQ_CST);
    if (now > most_readers) most_readers = now;
    CHECK_EQUAL(__atomic_load_n(&writers, __ATOMIC_SEQ_CST), 0);
    sched_yield();
    __atomic_sub_fetch(&readers, 1, __ATOMIC_SEQ_CST);
    CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  }
  return x;
}
static void* write_it(void* x) {
  for (int i = 0; i < 10; ++i) {
    CHECK_EQUAL(pthread_rwlock_wrlock(&lock), 0);
    CHECK_EQUAL(__atomic_add_fetch(&writers, 1, __ATOMIC_SEQ_CST), 1);
    CHECK_EQUAL(__atomic_load_n(&readers, __ATOMIC_SEQ_CST), 0);
    sched_yield();
    __atomic_sub_fetch(&writers, 1, __ATOMIC_SEQ_CST);
    CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  }
  return x;
}

int main(void) {
  pthread_t t[5];
  for (int i = 0; i < 3; ++i) t[i] = start(read_it, NULL);
  for (int i = 3; i < 5; ++i) t[i] = start(write_it, NULL);
  for (int i = 0; i < 5; ++i) join(t[i]);
  return succeed();
}
