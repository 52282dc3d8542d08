// SPDX-License-Identifier: Apache-2.0
// SEM_UNDO operations of a process survive exec and are undone at its end; those on a semaphore
// whose value was set meanwhile are not.
#define _GNU_SOURCE
#include <sys/sem.h>

#include "../child.h"

static int set;
static char** arguments;

static int change(int number, int by, int flags) {
  struct sembuf s = {(unsigned short)number, (short)by, (short)flags};
  return semop(set, &s, 1);
}

static int takes_and_executes(int x) {
  char name[16];
  snprintf(name, sizeof name, "%d", set);
  CHECK_EQUAL(change(0, -1, SEM_UNDO), 0);
  execl("/proc/self/exe", arguments[0], name, (char*)NULL);
  return x;
}

static int takes_and_waits(int x) {
  CHECK_EQUAL(change(0, -1, SEM_UNDO), 0);
  CHECK_EQUAL(change(1, 1, 0), 0);
  CHECK_EQUAL(change(2, -1, 0), 0);
  return x;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    set = atoi(argv[1]);
    CHECK_EQUAL(semctl(set, 0, GETVAL), 0);
    return 0;
  }
  arguments = argv;
  set = semget(IPC_PRIVATE, 3, 0600);
  CHECK_EQUAL(semctl(set, 0, SETVAL, 1), 0);
  CHECK_EQUAL(status_of(start_process(takes_and_executes, 1)), 0);
  CHECK_EQUAL(semctl(set, 0, GETVAL), 1);
  const pid_t p = start_process(takes_and_waits, 0);
  CHECK_EQUAL(change(1, -1, 0), 0);
  CHECK_EQUAL(semctl(set, 0, SETVAL, 5), 0);
  CHECK_EQUAL(change(2, 1, 0), 0);
  CHECK_EQUAL(status_of(p), 0);
  CHECK_EQUAL(semctl(set, 0, GETVAL), 5);
  CHECK_EQUAL(semctl(set, 0, IPC_RMID), 0);
  return succeed();
}
