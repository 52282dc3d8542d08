// SPDX-License-Identifier: Apache-2.0
// Synchronisation in constructors and destructors, threads that are started before main (trap 24).
#define _GNU_SOURCE
#include <pthread.h>

#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int steps;
static pthread_t early;

static void* count(void* x) {
  for (int i = 0; i < 10; ++i) {
    pthread_mutex_lock(&mutex);
    ++steps;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
  return x;
}

__attribute__((constructor)) static void begin(void) {
  CHECK_EQUAL(pthread_create(&early, NULL, count, NULL), 0);
  pthread_mutex_lock(&mutex);
  while (steps < 5) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

__attribute__((destructor)) static void end(void) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
}

int main(void) {
  CHECK_EQUAL(pthread_join(early, NULL), 0);
  CHECK_EQUAL(steps, 10);
  return succeed();
}
