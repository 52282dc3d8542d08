// SPDX-License-Identifier: Apache-2.0
// Read-write locks (traps 7, 8), spin locks with an operation inside (trap 4), barriers used again
// (trap 33), and once routines that synchronise (trap 1).
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

#include "check.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t outer = PTHREAD_ONCE_INIT, inner = PTHREAD_ONCE_INIT;
static int value, serial, outer_runs, inner_runs;

static void* try_read(void* x) {
  (void)x;
  const int error = pthread_rwlock_tryrdlock(&lock);
  if (error == 0) pthread_rwlock_unlock(&lock);
  return (void*)(long)error;
}
static void* try_write(void* x) {
  (void)x;
  const int error = pthread_rwlock_trywrlock(&lock);
  if (error == 0) pthread_rwlock_unlock(&lock);
  return (void*)(long)error;
}
static int elsewhere(void* (*f)(void*)) {
  pthread_t t;
  void* result;
  pthread_create(&t, NULL, f, NULL);
  pthread_join(t, &result);
  return (int)(long)result;
}

static void* read_and_write(void* x) {
  for (int i = 0; i < 200; ++i) {
    pthread_rwlock_rdlock(&lock);
    const int seen = value;
    sched_yield();
    CHECK_EQUAL(value, seen);
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_wrlock(&lock);
    ++value;
    pthread_rwlock_unlock(&lock);
  }
  return x;
}

static void* spin_and_lock(void* x) {
  for (int i = 0; i < 200; ++i) {
    pthread_spin_lock(&spin);
    pthread_mutex_lock(&mutex);
    ++value;
    pthread_mutex_unlock(&mutex);
    pthread_spin_unlock(&spin);
  }
  return x;
}

static void* rounds(void* x) {
  for (int i = 0; i < 50; ++i) {
    const int r = pthread_barrier_wait(&barrier);
    CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
    if (r == PTHREAD_BARRIER_SERIAL_THREAD) ++serial;
    pthread_barrier_wait(&barrier);
    CHECK_EQUAL(serial, i + 1);
    pthread_barrier_wait(&barrier);
  }
  return x;
}

static void run_inner(void) { ++inner_runs; }
static void run_outer(void) {
  pthread_mutex_lock(&mutex);
  sched_yield();
  pthread_once(&inner, run_inner);
  ++outer_runs;
  pthread_mutex_unlock(&mutex);
}
static void* once(void* x) {
  pthread_once(&outer, run_outer);
  CHECK_EQUAL(outer_runs, 1);
  return x;
}

static void run_all(void* (*f)(void*), int n) {
  pthread_t t[8];
  for (int i = 0; i < n; ++i) pthread_create(&t[i], NULL, f, NULL);
  for (int i = 0; i < n; ++i) pthread_join(t[i], NULL);
}

int main(void) {
  CHECK_EQUAL(pthread_rwlock_rdlock(&lock), 0);
  CHECK_EQUAL(elsewhere(try_read), 0);
  CHECK_EQUAL(elsewhere(try_write), EBUSY);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  CHECK_EQUAL(pthread_rwlock_wrlock(&lock), 0);
  CHECK_EQUAL(elsewhere(try_read), EBUSY);
  CHECK_EQUAL(pthread_rwlock_wrlock(&lock), EDEADLK);
  CHECK_EQUAL(pthread_rwlock_rdlock(&lock), EDEADLK);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  run_all(read_and_write, 4);
  CHECK_EQUAL(value, 800);
  CHECK_EQUAL(pthread_rwlock_wrlock(&lock), 0);
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  CHECK_EQUAL(pthread_rwlock_rdlock(&lock), 0);
  CHECK_EQUAL(pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &at), ETIMEDOUT);
  clock_gettime(CLOCK_REALTIME, &at);
  CHECK_EQUAL(pthread_rwlock_timedwrlock(&lock, &at), ETIMEDOUT);
  CHECK_EQUAL(pthread_rwlock_timedrdlock(&lock, &at), 0);
  pthread_rwlock_unlock(&lock);
  pthread_rwlock_unlock(&lock);
  printf("rwlock\n");

  value = 0;
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  run_all(spin_and_lock, 4);
  CHECK_EQUAL(value, 800);
  CHECK_EQUAL(pthread_spin_trylock(&spin), 0);
  CHECK_EQUAL(pthread_spin_trylock(&spin), EBUSY);
  printf("spin\n");

  CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, 0), EINVAL);
  CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, 5), 0);
  run_all(rounds, 5);
  CHECK_EQUAL(serial, 50);
  CHECK_EQUAL(pthread_barrier_destroy(&barrier), 0);
  printf("barrier\n");

  run_all(once, 5);
  CHECK_EQUAL(inner_runs, 1);
  printf("once\n");
  return succeed();
}
