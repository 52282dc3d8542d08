// SPDX-License-Identifier: Apache-2.0
// pthread_tryjoin_np returns EBUSY and pthread_timedjoin_np ETIMEDOUT while the thread runs.
#include "../small.h"

static sem_t go;
static void* wait_for_it(void* x) {
  sem_wait(&go);
  return x;
}

int main(void) {
  void* result = NULL;
  sem_init(&go, 0, 0);
  const pthread_t t = start(wait_for_it, (void*)3);
  CHECK_EQUAL(pthread_tryjoin_np(t, &result), EBUSY);
  struct timespec until = in_ns(CLOCK_REALTIME, 5 * MS);
  CHECK_EQUAL(pthread_timedjoin_np(t, &result, &until), ETIMEDOUT);
  until = in_ns(CLOCK_MONOTONIC, 5 * MS);
  CHECK_EQUAL(pthread_clockjoin_np(t, &result, CLOCK_MONOTONIC, &until), ETIMEDOUT);
  sem_post(&go);
  until = in_ns(CLOCK_REALTIME, 20000 * MS);
  CHECK_EQUAL(pthread_timedjoin_np(t, &result, &until), 0);
  CHECK_EQUAL((long)result, 3);
  return succeed();
}
