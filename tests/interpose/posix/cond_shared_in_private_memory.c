// SPDX-License-Identifier: Apache-2.0
// A condition marked as shared, in memory that is private: a forked child has a separate one at the
// same address, and its waits are its own.
#include "../child.h"

static pthread_mutex_t mutex;
static pthread_cond_t condition;
static int ready, waits;

static void* wait_until_ready(void* x) {
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  waits = 1;
  while (!ready) CHECK_EQUAL(pthread_cond_wait(&condition, &mutex), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  return x;
}

static int wait_for_ever(int x) {
  wait_until_ready(NULL);
  return x;
}

int main(void) {
  pthread_mutexattr_t m;
  pthread_condattr_t c;
  pthread_mutexattr_init(&m);
  pthread_condattr_init(&c);
  CHECK_EQUAL(pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED), 0);
  CHECK_EQUAL(pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED), 0);
  CHECK_EQUAL(pthread_mutex_init(&mutex, &m), 0);
  CHECK_EQUAL(pthread_cond_init(&condition, &c), 0);
  const pid_t p = start_process(wait_for_ever, 0);
  sleep_ms(20);
  const pthread_t t = start(wait_until_ready, NULL);
  for (int begun = 0; !begun; sleep_ms(1)) {
    pthread_mutex_lock(&mutex);
    begun = waits;
    pthread_mutex_unlock(&mutex);
  }
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  ready = 1;
  CHECK_EQUAL(pthread_cond_signal(&condition), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  join(t);
  CHECK_EQUAL(kill(p, SIGTERM), 0);
  CHECK_EQUAL(status_of(p), SIGTERM);
  return succeed();
}
