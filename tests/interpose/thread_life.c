// SPDX-License-Identifier: Apache-2.0
// Creation, results, joins of every kind, detached threads, reused handles (traps 17, 18),
// thread-specific destructors, and a main thread that ends before the others (trap 21).
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

#include "check.h"

static pthread_key_t key;
static int destroyed;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int running;

static void* add_one(void* x) { return (char*)x + 1; }

static void destroy(void* value) {
  // Synchronises in the destructor (trap 22) and sets the value again once.
  pthread_mutex_lock(&mutex);
  ++destroyed;
  pthread_mutex_unlock(&mutex);
  if ((long)value == 1) pthread_setspecific(key, (void*)2);
}

static void* with_key(void* x) {
  pthread_setspecific(key, (void*)1);
  pthread_exit(x);
}

static void* leave(void* x) {
  pthread_mutex_lock(&mutex);
  --running;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&mutex);
  return x;
}

static void* sleep_long(void* x) {
  const struct timespec t = {0, 50000000};
  nanosleep(&t, NULL);
  return x;
}

static pthread_t main_thread;
static void* last(void* x) {
  (void)x;
  CHECK_EQUAL(pthread_join(main_thread, NULL), 0);
  succeed();
  return NULL;
}

int main(void) {
  for (long i = 0; i < 6000; ++i) {
    pthread_t t;
    void* result;
    CHECK_EQUAL(pthread_create(&t, NULL, add_one, (void*)i), 0);
    CHECK_EQUAL(pthread_join(t, &result), 0);
    CHECK_EQUAL((long)result, i + 1);
  }
  printf("6000 joined\n");

  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (int i = 0; i < 200; ++i) {
    pthread_t t;
    pthread_mutex_lock(&mutex);
    ++running;
    pthread_mutex_unlock(&mutex);
    CHECK_EQUAL(pthread_create(&t, i % 2 ? &attributes : NULL, leave, NULL), 0);
    if (i % 2 == 0) CHECK_EQUAL(pthread_detach(t), 0);
  }
  pthread_mutex_lock(&mutex);
  while (running > 0) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
  printf("200 detached\n");

  pthread_key_create(&key, destroy);
  pthread_t t;
  void* result;
  CHECK_EQUAL(pthread_create(&t, NULL, with_key, (void*)77), 0);
  CHECK_EQUAL(pthread_join(t, &result), 0);
  CHECK_EQUAL((long)result, 77);
  CHECK_EQUAL(destroyed, 2);

  CHECK_EQUAL(pthread_create(&t, NULL, sleep_long, (void*)5), 0);
  CHECK_EQUAL(pthread_tryjoin_np(t, &result), EBUSY);
  struct timespec soon;
  clock_gettime(CLOCK_REALTIME, &soon);
  CHECK_EQUAL(pthread_timedjoin_np(t, &result, &soon), ETIMEDOUT);
  clock_gettime(CLOCK_MONOTONIC, &soon);
  soon.tv_sec += 100;
  CHECK_EQUAL(pthread_clockjoin_np(t, &result, CLOCK_MONOTONIC, &soon), 0);
  CHECK_EQUAL((long)result, 5);
  CHECK_EQUAL(pthread_join(pthread_self(), NULL), EDEADLK);
  printf("joins of every kind\n");

  main_thread = pthread_self();
  CHECK_EQUAL(pthread_create(&t, NULL, last, NULL), 0);
  pthread_exit(NULL);
}
