// SPDX-License-Identifier: Apache-2.0
// Cancellation: in a condition wait (the clean-up handler holds the mutex again, and its unlock is
// an ordinary operation), in sleep, semaphore and join; disabled; asynchronous (trap 19).
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>

#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t semaphore, ready;
static volatile int cleaned;
static time_t begun;

static void clean(void* x) {
  (void)x;
  ++cleaned;
  CHECK(time(NULL) - begun < 1000);  // the same clock as all threads': the handler is scheduled
  const struct timespec t = {0, 20000000};
  nanosleep(&t, NULL);  // meanwhile `waiter` waits for the mutex, and this unlock must wake it
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
}

static void* waiter(void* x) {
  while (cleaned == 0) sched_yield();
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  return x;
}

static void* in_condition(void* x) {
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(clean, NULL);
  sem_post(&ready);
  for (;;) pthread_cond_wait(&never, &mutex);
  pthread_cleanup_pop(1);
  return x;
}
static void* in_sleep(void* x) {
  sem_post(&ready);
  sleep(1000000);
  return x;
}
static void* in_semaphore(void* x) {
  sem_post(&ready);
  sem_wait(&semaphore);
  return x;
}
static void* in_join(void* x) {
  sem_post(&ready);
  pthread_join(*(pthread_t*)x, NULL);
  return x;
}
static void* in_loop(void* x) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  sem_post(&ready);
  for (;;) sched_yield();
  return x;
}
static void* disabled(void* x) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  sem_post(&ready);
  struct timespec t = {0, 20000000};
  nanosleep(&t, NULL);
  pthread_testcancel();
  *(int*)x = 1;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  pthread_testcancel();
  *(int*)x = 2;
  return x;
}

static void cancel(const char* name, void* (*f)(void*), void* x) {
  pthread_t t;
  void* result;
  CHECK_EQUAL(pthread_create(&t, NULL, f, x), 0);
  sem_wait(&ready);
  CHECK_EQUAL(pthread_cancel(t), 0);
  CHECK_EQUAL(pthread_join(t, &result), 0);
  CHECK(result == PTHREAD_CANCELED);
  printf("%s\n", name);
}

int main(void) {
  begun = time(NULL);
  sem_init(&semaphore, 0, 0);
  sem_init(&ready, 0, 0);
  pthread_t waiting;
  CHECK_EQUAL(pthread_create(&waiting, NULL, waiter, NULL), 0);
  cancel("condition", in_condition, NULL);
  CHECK_EQUAL(pthread_join(waiting, NULL), 0);
  CHECK_EQUAL(cleaned, 1);
  CHECK_EQUAL(pthread_mutex_trylock(&mutex), 0);
  pthread_mutex_unlock(&mutex);
  cancel("sleep", in_sleep, NULL);
  cancel("semaphore", in_semaphore, NULL);
  pthread_t sleeper;
  pthread_create(&sleeper, NULL, in_sleep, NULL);
  sem_wait(&ready);
  cancel("join", in_join, &sleeper);
  pthread_cancel(sleeper);
  CHECK_EQUAL(pthread_join(sleeper, NULL), 0);
  cancel("asynchronous", in_loop, NULL);
  int reached = 0;
  cancel("disabled", disabled, &reached);
  CHECK_EQUAL(reached, 1);
  return succeed();
}
