// SPDX-License-Identifier: Apache-2.0
// sem_clockwait on a semaphore that is posted meanwhile succeeds; on one that is not, it times out.
#include "../small.h"

static sem_t semaphore;

static void* post(void* x) {
  sleep_ms(5);
  sem_post(&semaphore);
  return x;
}

int main(void) {
  sem_init(&semaphore, 0, 0);
  const pthread_t t = start(post, NULL);
  struct timespec until = in_ns(CLOCK_MONOTONIC, 60000 * MS);
  CHECK_EQUAL(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until), 0);
  join(t);
  until = in_ns(CLOCK_REALTIME, 5 * MS);
  CHECK_EQUAL(sem_clockwait(&semaphore, CLOCK_REALTIME, &until), -1);
  CHECK_EQUAL(errno, ETIMEDOUT);
  return succeed();
}
