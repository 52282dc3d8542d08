// SPDX-License-Identifier: Apache-2.0
// Handlers run during waits for a mutex, a read-write lock, a barrier and a thread; none of these
// calls ends early, and none returns EINTR.
#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static volatile int released;

static void* hold(void* ready) {
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  CHECK_EQUAL(pthread_rwlock_wrlock(&lock), 0);
  CHECK_EQUAL(sem_post(ready), 0);
  sleep_ms(40);
  released = 1;
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  sleep_ms(40);
  released = 2;
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  sleep_ms(40);
  released = 3;
  pthread_barrier_wait(&barrier);
  sleep_ms(40);
  released = 4;
  return NULL;
}

int main(void) {
  sem_t ready;
  CHECK_EQUAL(sem_init(&ready, 0, 0), 0);
  CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, 2), 0);
  const pthread_t t = start(hold, &ready);
  CHECK_EQUAL(sem_wait(&ready), 0);
  struct Interruptions rings;
  begin_interruptions(&rings, 0);
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  CHECK(released >= 1);
  CHECK_EQUAL(pthread_rwlock_rdlock(&lock), 0);
  CHECK(released >= 2);
  const int result = pthread_barrier_wait(&barrier);
  CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
  CHECK(released >= 3);
  join(t);
  CHECK_EQUAL(released, 4);
  end_interruptions(&rings);
  return succeed();
}
