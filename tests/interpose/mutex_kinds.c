// SPDX-License-Identifier: Apache-2.0
// Mutexes of every kind: the results of lock, trylock, timedlock and unlock (traps 5, 6, 11, 35),
// and mutual exclusion under contention.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "check.h"

static pthread_mutex_t mutex;
static long counter;

static void make(int kind) {
  pthread_mutexattr_t a;
  pthread_mutexattr_init(&a);
  pthread_mutexattr_settype(&a, kind);
  pthread_mutex_init(&mutex, &a);
}

static void* try_it(void* x) {
  (void)x;
  return (void*)(long)pthread_mutex_trylock(&mutex);
}

static int try_elsewhere(void) {
  pthread_t t;
  void* result;
  pthread_create(&t, NULL, try_it, NULL);
  pthread_join(t, &result);
  return (int)(long)result;
}

static void* count(void* x) {
  for (int i = 0; i < 1000; ++i) {
    pthread_mutex_lock(&mutex);
    const long seen = counter;
    if (i % 100 == 0) sched_yield();
    counter = seen + 1;
    pthread_mutex_unlock(&mutex);
  }
  return x;
}

static void* hold(void* x) {
  pthread_mutex_lock(&mutex);
  const struct timespec t = {0, 100000000};
  nanosleep(&t, NULL);
  pthread_mutex_unlock(&mutex);
  return x;
}

int main(void) {
  make(PTHREAD_MUTEX_ERRORCHECK);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), EPERM);
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  CHECK_EQUAL(pthread_mutex_lock(&mutex), EDEADLK);
  CHECK_EQUAL(pthread_mutex_trylock(&mutex), EBUSY);
  CHECK_EQUAL(try_elsewhere(), EBUSY);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  printf("errorcheck\n");

  make(PTHREAD_MUTEX_RECURSIVE);
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  CHECK_EQUAL(pthread_mutex_trylock(&mutex), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  CHECK_EQUAL(try_elsewhere(), EBUSY);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  CHECK_EQUAL(try_elsewhere(), 0);
  printf("recursive\n");

  const int kinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                       PTHREAD_MUTEX_ADAPTIVE_NP};
  for (int k = 0; k < 4; ++k) {
    make(kinds[k]);
    counter = 0;
    pthread_t t[4];
    for (int i = 0; i < 4; ++i) pthread_create(&t[i], NULL, count, NULL);
    for (int i = 0; i < 4; ++i) pthread_join(t[i], NULL);
    CHECK_EQUAL(counter, 4000);
  }
  printf("exclusion\n");

  make(PTHREAD_MUTEX_NORMAL);
  pthread_t t;
  pthread_create(&t, NULL, hold, NULL);
  while (pthread_mutex_trylock(&mutex) == 0) {
    pthread_mutex_unlock(&mutex);
    sched_yield();
  }
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  at.tv_sec -= 1;
  CHECK_EQUAL(pthread_mutex_timedlock(&mutex, &at), ETIMEDOUT);
  at.tv_nsec = -1;
  CHECK_EQUAL(pthread_mutex_timedlock(&mutex, &at), EINVAL);
  clock_gettime(CLOCK_MONOTONIC, &at);
  at.tv_nsec += 1000000;
  if (at.tv_nsec >= 1000000000) {
    at.tv_nsec -= 1000000000;
    ++at.tv_sec;
  }
  CHECK_EQUAL(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at), ETIMEDOUT);
  at.tv_sec += 10;
  CHECK_EQUAL(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  pthread_join(t, NULL);
  printf("deadlines\n");
  return succeed();
}
