// SPDX-License-Identifier: Apache-2.0
// Condition variables: a bounded buffer, deadlines on both clocks and in the past (traps 9, 11,
// 13), a recursive mutex, broadcast.
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

#include "check.h"

enum { kSlots = 4, kItems = 500, kProducers = 3 };
// Checks that a thread that returns from a wait holds it.
static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int buffer[kSlots], used;
static long sum;

static void* produce(void* x) {
  for (int i = 1; i <= kItems; ++i) {
    pthread_mutex_lock(&mutex);
    while (used == kSlots) pthread_cond_wait(&not_full, &mutex);
    buffer[used++] = i;
    pthread_cond_signal(&not_empty);
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  }
  return x;
}

static void* consume(void* x) {
  for (int i = 0; i < kItems * kProducers; ++i) {
    pthread_mutex_lock(&mutex);
    while (used == 0) pthread_cond_wait(&not_empty, &mutex);
    sum += buffer[--used];
    pthread_cond_signal(&not_full);
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  }
  return x;
}

static int go;
static void* await(void* x) {
  pthread_mutex_lock(&mutex);
  while (!go) pthread_cond_wait(&not_empty, &mutex);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  return x;
}

static long long elapsed_ms(clockid_t clock, const struct timespec* from) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (now.tv_sec - from->tv_sec) * 1000LL + (now.tv_nsec - from->tv_nsec) / 1000000;
}

static struct timespec later(clockid_t clock, int ms) {
  struct timespec t;
  clock_gettime(clock, &t);
  t.tv_sec += ms / 1000;
  t.tv_nsec += ms % 1000 * 1000000L;
  if (t.tv_nsec >= 1000000000) {
    t.tv_nsec -= 1000000000;
    ++t.tv_sec;
  }
  return t;
}

int main(void) {
  pthread_t t[kProducers + 1];
  for (int i = 0; i < kProducers; ++i) pthread_create(&t[i], NULL, produce, NULL);
  pthread_create(&t[kProducers], NULL, consume, NULL);
  for (int i = 0; i <= kProducers; ++i) pthread_join(t[i], NULL);
  CHECK_EQUAL(sum, kProducers * (long)kItems * (kItems + 1) / 2);
  printf("buffer\n");

  for (int i = 0; i < 3; ++i) pthread_create(&t[i], NULL, await, NULL);
  pthread_mutex_lock(&mutex);
  go = 1;
  pthread_cond_broadcast(&not_empty);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  for (int i = 0; i < 3; ++i) pthread_join(t[i], NULL);
  printf("broadcast\n");

  pthread_condattr_t a;
  pthread_cond_t monotonic;
  pthread_condattr_init(&a);
  pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
  pthread_cond_init(&monotonic, &a);
  pthread_mutex_lock(&mutex);
  struct timespec begin, at;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  at = later(CLOCK_MONOTONIC, 60);
  CHECK_EQUAL(pthread_cond_timedwait(&monotonic, &mutex, &at), ETIMEDOUT);
  CHECK(elapsed_ms(CLOCK_MONOTONIC, &begin) >= 60);
  CHECK(elapsed_ms(CLOCK_MONOTONIC, &begin) < 10000);
  at = later(CLOCK_REALTIME, 60);
  CHECK_EQUAL(pthread_cond_timedwait(&not_full, &mutex, &at), ETIMEDOUT);
  CHECK(elapsed_ms(CLOCK_MONOTONIC, &begin) >= 120);
  at = later(CLOCK_MONOTONIC, 30);
  CHECK_EQUAL(pthread_cond_clockwait(&not_full, &mutex, CLOCK_MONOTONIC, &at), ETIMEDOUT);
  at = later(CLOCK_REALTIME, -5000);
  clock_gettime(CLOCK_MONOTONIC, &begin);
  CHECK_EQUAL(pthread_cond_timedwait(&not_full, &mutex, &at), ETIMEDOUT);
  CHECK(elapsed_ms(CLOCK_MONOTONIC, &begin) < 50);
  at.tv_nsec = 1000000000;
  CHECK_EQUAL(pthread_cond_timedwait(&not_full, &mutex, &at), EINVAL);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  CHECK_EQUAL(pthread_cond_destroy(&monotonic), 0);
  printf("deadlines\n");
  return succeed();
}
