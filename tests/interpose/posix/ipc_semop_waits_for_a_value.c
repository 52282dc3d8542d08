// SPDX-License-Identifier: Apache-2.0
// semop waits until the value is sufficient; an operation of 0 waits until the value is 0.
#define _GNU_SOURCE
#include <sys/sem.h>

#include "../child.h"

static int set;
static int change(int number, int by, int flags) {
  struct sembuf s = {(unsigned short)number, (short)by, (short)flags};
  return semop(set, &s, 1);
}
static int child(int x) {
  CHECK_EQUAL(change(0, -2, 0), 0);
  sleep_ms(5);
  CHECK_EQUAL(change(1, -1, 0), 0);
  return x;
}

int main(void) {
  set = semget(IPC_PRIVATE, 2, 0600);
  CHECK(set >= 0);
  CHECK_EQUAL(semctl(set, 0, SETVAL, 0), 0);
  CHECK_EQUAL(semctl(set, 1, SETVAL, 1), 0);
  CHECK_EQUAL(change(0, -1, IPC_NOWAIT), -1);
  CHECK_EQUAL(errno, EAGAIN);
  const pid_t p = start_process(child, 7);
  sleep_ms(5);
  CHECK_EQUAL(change(0, 1, 0), 0);
  CHECK_EQUAL(waitpid(p, NULL, WNOHANG), 0);
  CHECK_EQUAL(change(0, 1, 0), 0);
  CHECK_EQUAL(change(1, 0, 0), 0);
  CHECK_EQUAL(semctl(set, 0, GETVAL), 0);
  CHECK_EQUAL(WEXITSTATUS(status_of(p)), 7);
  CHECK_EQUAL(semctl(set, 0, IPC_RMID), 0);
  return succeed();
}
