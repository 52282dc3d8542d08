// SPDX-License-Identifier: Apache-2.0
// semtimedop returns EAGAIN after its time, unless it gets the value before.
#define _GNU_SOURCE
#include <sys/sem.h>

#include "../small.h"

static int set;
static void* giver(void* x) {
  struct sembuf s = {0, 1, 0};
  sleep_ms(10);
  CHECK_EQUAL(semop(set, &s, 1), 0);
  return x;
}

int main(void) {
  struct sembuf take = {0, -1, 0};
  const struct timespec short_time = {0, 20 * MS}, long_time = {20, 0}, bad = {0, -1};
  set = semget(IPC_PRIVATE, 1, 0600);
  CHECK_EQUAL(semctl(set, 0, SETVAL, 0), 0);
  const long long begin = now_ns(CLOCK_MONOTONIC);
  CHECK_EQUAL(semtimedop(set, &take, 1, &short_time), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK(now_ns(CLOCK_MONOTONIC) - begin >= 20 * MS);
  const pthread_t t = start(giver, NULL);
  CHECK_EQUAL(semtimedop(set, &take, 1, &long_time), 0);
  join(t);
  CHECK_EQUAL(semtimedop(set, &take, 1, &bad), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(semctl(set, 0, IPC_RMID), 0);
  return succeed();
}
