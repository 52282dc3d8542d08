// SPDX-License-Identifier: Apache-2.0
// sem_clockwait and pthread_cond_clockwait accept two clocks; any other clock, and a bad time, is
// EINVAL, also if they would not wait.
#include "../small.h"

int main(void) {
  sem_t s;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  const struct timespec bad = {0, 1000000000}, past = {1, 0};
  CHECK_EQUAL(sem_init(&s, 0, 1), 0);
  CHECK_EQUAL(sem_timedwait(&s, &bad), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(sem_clockwait(&s, 99, &past), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  CHECK_EQUAL(pthread_cond_timedwait(&condition, &mutex, &bad), EINVAL);
  CHECK_EQUAL(pthread_cond_clockwait(&condition, &mutex, 99, &past), EINVAL);
  CHECK_EQUAL(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &past), ETIMEDOUT);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  CHECK_EQUAL(sem_clockwait(&s, CLOCK_MONOTONIC, &past), 0);
  CHECK_EQUAL(sem_clockwait(&s, CLOCK_MONOTONIC, &past), -1);
  CHECK_EQUAL(errno, ETIMEDOUT);
  CHECK_EQUAL(sem_post(&s), 0);
  CHECK_EQUAL(sem_clockwait(&s, CLOCK_BOOTTIME, &past), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  CHECK_EQUAL(pthread_cond_clockwait(&condition, &mutex, CLOCK_TAI, &past), EINVAL);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  return succeed();
}
