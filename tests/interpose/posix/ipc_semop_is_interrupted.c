// SPDX-License-Identifier: Apache-2.0
// A handler ends semop and msgrcv with EINTR, also with SA_RESTART.
#define _GNU_SOURCE
#include <sys/msg.h>
#include <sys/sem.h>

#include "../small.h"

int main(void) {
  struct Interruptions bell;
  struct sembuf s = {0, -1, 0};
  long message[2];
  const int set = semget(IPC_PRIVATE, 1, 0600), queue = msgget(IPC_PRIVATE, 0600);
  CHECK_EQUAL(semctl(set, 0, SETVAL, 0), 0);
  begin_interruptions(&bell, SA_RESTART);
  CHECK_EQUAL(semop(set, &s, 1), -1);
  CHECK_EQUAL(errno, EINTR);
  end_interruptions(&bell);
  begin_interruptions(&bell, SA_RESTART);
  CHECK_EQUAL(msgrcv(queue, message, sizeof message[1], 0, 0), -1);
  CHECK_EQUAL(errno, EINTR);
  end_interruptions(&bell);
  CHECK_EQUAL(semctl(set, 0, IPC_RMID), 0);
  CHECK_EQUAL(msgctl(queue, IPC_RMID, NULL), 0);
  return succeed();
}
