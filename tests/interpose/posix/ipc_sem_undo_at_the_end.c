// SPDX-License-Identifier: Apache-2.0
// SEM_UNDO operations of a process are undone when it ends, which wakes waiters.
#define _GNU_SOURCE
#include <sys/sem.h>

#include "../child.h"

static int set;
static int child(int by_signal) {
  struct sembuf s = {0, -1, SEM_UNDO};
  CHECK_EQUAL(semop(set, &s, 1), 0);
  struct sembuf told = {1, -1, 0};
  CHECK_EQUAL(semop(set, &told, 1), 0);
  if (by_signal) raise(SIGKILL);
  return 0;
}

int main(void) {
  struct sembuf s = {0, -1, 0};
  set = semget(IPC_PRIVATE, 2, 0600);
  for (int by_signal = 0; by_signal < 2; ++by_signal) {
    CHECK_EQUAL(semctl(set, 0, SETVAL, 1), 0);
    CHECK_EQUAL(semctl(set, 1, SETVAL, 0), 0);
    const pid_t p = start_process(child, by_signal);
    while (semctl(set, 0, GETVAL) != 0) sched_yield();
    CHECK_EQUAL(semctl(set, 1, SETVAL, 1), 0);
    CHECK_EQUAL(semop(set, &s, 1), 0);
    CHECK_EQUAL(status_of(p), by_signal ? SIGKILL : 0);
    CHECK_EQUAL(semctl(set, 0, GETVAL), 0);
  }
  CHECK_EQUAL(semctl(set, 0, IPC_RMID), 0);
  return succeed();
}
