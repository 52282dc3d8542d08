// SPDX-License-Identifier: Apache-2.0
// A robust mutex is unlocked without having been made consistent: waiters get ENOTRECOVERABLE, now
// and later, until it is initialised again.
#include "../small.h"

static pthread_mutex_t mutex;
static sem_t waits;

static void* dies_with_it(void* unused) {
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  return unused;
}

static void* wait_for_it(void* unused) {
  CHECK_EQUAL(sem_post(&waits), 0);
  CHECK_EQUAL(pthread_mutex_lock(&mutex), ENOTRECOVERABLE);
  return unused;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_t threads[1];
  CHECK_EQUAL(sem_init(&waits, 0, 0), 0);
  CHECK_EQUAL(pthread_mutexattr_init(&attributes), 0);
  CHECK_EQUAL(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), 0);
  CHECK_EQUAL(pthread_mutex_init(&mutex, &attributes), 0);
  CHECK_EQUAL(pthread_mutex_consistent(&mutex), EINVAL);
  elsewhere(dies_with_it, NULL);
  CHECK_EQUAL(pthread_mutex_trylock(&mutex), EOWNERDEAD);
  for (int i = 0; i < 1; ++i) threads[i] = start(wait_for_it, NULL);
  for (int i = 0; i < 1; ++i) CHECK_EQUAL(sem_wait(&waits), 0);
  sleep_ms(5);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  for (int i = 0; i < 1; ++i) join(threads[i]);
  CHECK_EQUAL(pthread_mutex_trylock(&mutex), ENOTRECOVERABLE);
  CHECK_EQUAL(pthread_mutex_destroy(&mutex), 0);
  CHECK_EQUAL(pthread_mutex_init(&mutex, &attributes), 0);
  elsewhere(dies_with_it, NULL);
  const struct timespec t = in_ns(CLOCK_REALTIME, 1000 * MS);
  CHECK_EQUAL(pthread_mutex_timedlock(&mutex, &t), EOWNERDEAD);
  CHECK_EQUAL(pthread_mutex_consistent(&mutex), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  return succeed();
}
