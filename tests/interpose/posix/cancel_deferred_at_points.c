// SPDX-License-Identifier: Apache-2.0
// A deferred cancellation waits for the next cancellation point; pthread_testcancel is one.
#include "../small.h"

static volatile int reached, passed;
static sem_t begun, cancelled;
static void* work(void* x) {
  sem_post(&begun);
  while (sem_trywait(&cancelled) != 0) sched_yield();  // no cancellation points
  reached = 1;
  pthread_testcancel();
  passed = 1;
  return x;
}

int main(void) {
  sem_init(&begun, 0, 0);
  sem_init(&cancelled, 0, 0);
  const pthread_t t = start(work, NULL);
  sem_wait(&begun);
  CHECK_EQUAL(pthread_cancel(t), 0);
  sem_post(&cancelled);
  CHECK(join(t) == PTHREAD_CANCELED);
  CHECK_EQUAL(reached, 1);
  CHECK_EQUAL(passed, 0);
  return succeed();
}
