// SPDX-License-Identifier: Apache-2.0
// Processes add to a number in a System V segment, protected by a semaphore; no addition is lost.
#define _GNU_SOURCE
#include <sys/sem.h>
#include <sys/shm.h>

#include "../child.h"

static int set;
static volatile long* number;
static int adder(int times) {
  struct sembuf take = {0, -1, SEM_UNDO}, give = {0, 1, SEM_UNDO};
  for (int i = 0; i < times; ++i) {
    CHECK_EQUAL(semop(set, &take, 1), 0);
    const long before = *number;
    if (i % 4 == 0) sched_yield();
    *number = before + 1;
    CHECK_EQUAL(semop(set, &give, 1), 0);
  }
  return 0;
}

int main(void) {
  const int segment = shmget(IPC_PRIVATE, 4096, 0600);
  set = semget(IPC_PRIVATE, 1, 0600);
  number = shmat(segment, NULL, 0);
  CHECK((void*)number != (void*)-1);
  CHECK_EQUAL(semctl(set, 0, SETVAL, 1), 0);
  pid_t p[3];
  for (int i = 0; i < 3; ++i) p[i] = start_process(adder, 20);
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(status_of(p[i]), 0);
  CHECK_EQUAL(*number, 60);
  CHECK_EQUAL(shmdt((void*)number), 0);
  CHECK_EQUAL(shmctl(segment, IPC_RMID, NULL), 0);
  CHECK_EQUAL(semctl(set, 0, IPC_RMID), 0);
  return succeed();
}
