// SPDX-License-Identifier: Apache-2.0
// semget, semop and semctl: missing, not permitted, too many, out of range.
#define _GNU_SOURCE
#include <sys/sem.h>

#include "../small.h"

static void refuses(int id, int number, int step, int error) {
  struct sembuf op = {(unsigned short)number, (short)step, IPC_NOWAIT};
  CHECK_EQUAL(semop(id, &op, 1), -1);
  CHECK_EQUAL(errno, error);
}

int main(void) {
  CHECK_EQUAL(semget(0x43524e01, 1, 0600), -1);
  CHECK_EQUAL(errno, ENOENT);
  CHECK_EQUAL(semget(IPC_PRIVATE, 0, 0600 | IPC_CREAT), -1);
  CHECK_EQUAL(errno, EINVAL);
  const int id = semget(IPC_PRIVATE, 2, 0600);
  CHECK(id >= 0);
  refuses(id, 0, 0 - 1, EAGAIN);
  refuses(id, 2, 1, EFBIG);
  CHECK_EQUAL(semctl(id, 0, SETVAL, 32767), 0);
  refuses(id, 0, 1, ERANGE);
  CHECK_EQUAL(semctl(id, 0, SETVAL, 32768), -1);
  CHECK_EQUAL(errno, ERANGE);
  CHECK_EQUAL(semctl(id, 2, GETVAL), -1);
  CHECK_EQUAL(errno, EINVAL);
  struct sembuf op = {0, -1, 0};
  CHECK_EQUAL(semop(id, &op, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(semop(id, &op, 501), -1);
  CHECK_EQUAL(errno, E2BIG);
  const struct timespec negative = {-1, 0}, bad = {0, 1000000000};
  CHECK_EQUAL(semtimedop(id, &op, 1, &negative), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(semtimedop(id, &op, 1, &bad), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(semctl(id, 0, GETVAL), 32767);
  CHECK_EQUAL(semctl(id, 0, GETPID), getpid());
  unsigned short values[2] = {3, 4};
  CHECK_EQUAL(semctl(id, 0, SETALL, values), 0);
  CHECK_EQUAL(semop(id, &op, 1), 0);
  memset(values, 0, sizeof values);
  CHECK_EQUAL(semctl(id, 0, GETALL, values), 0);
  CHECK_EQUAL(values[0], 2);
  CHECK_EQUAL(values[1], 4);
  CHECK_EQUAL(semctl(id, 0, IPC_RMID), 0);
  refuses(id, 0, 1, EINVAL);
  CHECK_EQUAL(semctl(id, 0, IPC_RMID), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
