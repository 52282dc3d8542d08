// SPDX-License-Identifier: Apache-2.0
// The operations of one semop happen together or not at all.
#define _GNU_SOURCE
#include <sys/sem.h>

#include "../small.h"

static int set;
static void* taker(void* x) {
  struct sembuf both[2] = {{0, -1, 0}, {1, -1, 0}};
  CHECK_EQUAL(semop(set, both, 2), 0);
  return x;
}

int main(void) {
  unsigned short values[2] = {1, 0};
  struct sembuf both[2] = {{0, -1, 0}, {1, -1, IPC_NOWAIT}}, one = {1, 1, 0};
  set = semget(IPC_PRIVATE, 2, 0600);
  CHECK_EQUAL(semctl(set, 0, SETALL, values), 0);
  CHECK_EQUAL(semop(set, both, 2), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(semctl(set, 0, GETVAL), 1);
  const pthread_t t = start(taker, NULL);
  sleep_ms(5);
  CHECK_EQUAL(semctl(set, 0, GETVAL), 1);
  CHECK_EQUAL(semop(set, &one, 1), 0);
  join(t);
  CHECK_EQUAL(semctl(set, 0, GETALL, values), 0);
  CHECK_EQUAL(values[0] + values[1], 0);
  CHECK_EQUAL(semctl(set, 0, IPC_RMID), 0);
  return succeed();
}
