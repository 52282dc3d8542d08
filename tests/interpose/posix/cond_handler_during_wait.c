// SPDX-License-Identifier: Apache-2.0
// A signal handler runs while its thread waits for a condition; the wait continues or wakes
// spuriously, and never returns EINTR.
#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static volatile int handled;
static int ready;
static pthread_t waiter;
static void note(int signo) { handled += signo == SIGUSR1; }
static void* disturb(void* x) {
  for (int i = 0; i < 3; ++i) {
    sleep_ms(2);
    pthread_kill(waiter, SIGUSR1);
  }
  sleep_ms(2);
  pthread_mutex_lock(&mutex);
  ready = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  return x;
}

int main(void) {
  waiter = pthread_self();
  handle(SIGUSR1, note, 0);
  const pthread_t t = start(disturb, NULL);
  pthread_mutex_lock(&mutex);
  while (!ready) CHECK_EQUAL(pthread_cond_wait(&condition, &mutex), 0);
  pthread_mutex_unlock(&mutex);
  join(t);
  CHECK(handled >= 1);
  return succeed();
}
