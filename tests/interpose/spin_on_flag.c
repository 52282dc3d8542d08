// SPDX-License-Identifier: Apache-2.0
// Threads that wait in a loop without any call, for a word that another thread writes, or for one
// that needs an operation of another thread (traps 3 and 4). Natively this needs no help.
//
// solo: --stalls
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "check.h"

enum { kRounds = 20, kThreads = 4, kAdditions = 15 };

static atomic_int go, done;

static void* answer(void* unused) {
  (void)unused;
  for (int i = 1; i <= kRounds; ++i) {
    while (atomic_load(&go) != i) {
    }
    atomic_store(&done, i);
  }
  return NULL;
}

// Back and forth: both spin.
static void ping_pong(void) {
  pthread_t other;
  CHECK(pthread_create(&other, NULL, answer, NULL) == 0);
  for (int i = 1; i <= kRounds; ++i) {
    atomic_store(&go, i);
    while (atomic_load(&done) != i) {
    }
  }
  pthread_join(other, NULL);
  printf("%d rounds\n", atomic_load(&done));
}

static atomic_flag lock = ATOMIC_FLAG_INIT;
static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
static long sum;

// An inline spin lock, whose holder takes operations of the schedule.
static void* add(void* unused) {
  (void)unused;
  for (int i = 0; i < kAdditions; ++i) {
    while (atomic_flag_test_and_set(&lock)) {
    }
    pthread_mutex_lock(&inner);
    ++sum;
    pthread_mutex_unlock(&inner);
    atomic_flag_clear(&lock);
  }
  return NULL;
}

static void inline_lock(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, add, NULL) == 0);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  printf("sum %ld\n", sum);
}

int main(void) {
  ping_pong();
  inline_lock();
  return succeed();
}
