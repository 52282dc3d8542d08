// SPDX-License-Identifier: Apache-2.0
// A process that waits for a semaphore or a message gets EIDRM when it is removed, and EINVAL
// afterwards.
#define _GNU_SOURCE
#include <sys/msg.h>
#include <sys/sem.h>

#include "../small.h"

static int set, queue;
static void* takes(void* x) {
  struct sembuf s = {0, -1, 0};
  CHECK_EQUAL(semop(set, &s, 1), -1);
  CHECK_EQUAL(errno, EIDRM);
  CHECK_EQUAL(semop(set, &s, 1), -1);
  CHECK_EQUAL(errno, EINVAL);
  return x;
}
static void* receives(void* x) {
  struct {
    long type;
    char text[8];
  } m;
  CHECK_EQUAL(msgrcv(queue, &m, sizeof m.text, 0, 0), -1);
  CHECK_EQUAL(errno, EIDRM);
  return x;
}

int main(void) {
  set = semget(IPC_PRIVATE, 1, 0600);
  queue = msgget(IPC_PRIVATE, 0600);
  CHECK_EQUAL(semctl(set, 0, SETVAL, 0), 0);
  const pthread_t a = start(takes, NULL), b = start(receives, NULL);
  sleep_ms(10);
  CHECK_EQUAL(semctl(set, 0, IPC_RMID), 0);
  CHECK_EQUAL(msgctl(queue, IPC_RMID, NULL), 0);
  join(a);
  join(b);
  return succeed();
}
