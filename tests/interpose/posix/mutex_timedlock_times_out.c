// SPDX-License-Identifier: Apache-2.0
// pthread_mutex_timedlock waits until the mutex is free, or until its time.
#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t held, enough;
static void* hold(void* x) {
  (void)x;
  pthread_mutex_lock(&mutex);
  sem_post(&held);
  sem_wait(&enough);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(void) {
  sem_init(&held, 0, 0);
  sem_init(&enough, 0, 0);
  const pthread_t t = start(hold, NULL);
  sem_wait(&held);
  struct timespec until = in_ns(CLOCK_REALTIME, 3 * MS);
  CHECK_EQUAL(pthread_mutex_timedlock(&mutex, &until), ETIMEDOUT);
  until = in_ns(CLOCK_MONOTONIC, 3 * MS);
  CHECK_EQUAL(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until), ETIMEDOUT);
  sem_post(&enough);
  until = in_ns(CLOCK_REALTIME, 60000 * MS);
  CHECK_EQUAL(pthread_mutex_timedlock(&mutex, &until), 0);
  const struct timespec bad = {0, -1};
  CHECK_EQUAL(pthread_mutex_timedlock(&mutex, &bad), EINVAL);
  pthread_mutex_unlock(&mutex);
  CHECK_EQUAL(pthread_mutex_timedlock(&mutex, &bad), 0);  // free: the time is not checked
  join(t);
  return succeed();
}
