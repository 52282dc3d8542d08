// SPDX-License-Identifier: Apache-2.0
// says: limit: .*semaphores to undo
// Semaphores are changed with SEM_UNDO until no more changes can be recorded (ENOSPC); an operation
// that had to wait can fail like this, too. Reversing a change with SEM_UNDO makes room.
#include <sys/sem.h>

#include "../limit.h"

#define MOST 1100

static int id;

static int change(int number, int by) {
  struct sembuf op = {(unsigned short)number, (short)by, SEM_UNDO};
  return semop(id, &op, 1);
}

static int value_of(int number) { return semctl(id, number, GETVAL); }

static void* take_when_it_is_given(void* given) {
  (void)given;
  return (void*)(long)(change(MOST, -1) == 0 ? 0 : errno);
}

int main(void) {
  id = semget(IPC_PRIVATE, MOST + 1, IPC_CREAT | 0600);
  CHECK(id >= 0);
  const pthread_t waits = start(take_when_it_is_given, NULL);
  while (semctl(id, MOST, GETNCNT) == 0 && value_of(0) == 0) {
    sleep_ms(10);
    break;  // under Crane no thread waits in the kernel
  }
  int made = 0;
  while (made < MOST && change(made, 1) == 0) ++made;
  CHECK(made > 100);
  if (made < MOST) {
    for (int i = 0; i < 20; ++i) {
      CHECK_EQUAL(change(made, 1), -1);
      check_refusal(errno, ENOSPC, ENOMEM, 0);
      CHECK_EQUAL(value_of(made), 0);
    }
  }
  struct sembuf give = {MOST, 1, 0};
  CHECK_EQUAL(semop(id, &give, 1), 0);
  const long error = (long)join(waits);
  if (error != 0) check_refusal((int)error, ENOSPC, ENOMEM, 0);
  CHECK_EQUAL(value_of(MOST), error == 0 ? 0 : 1);
  CHECK_EQUAL(change(5, -1), 0);
  CHECK_EQUAL(change(5, 1), 0);
  for (int i = 0; i < made; ++i) CHECK_EQUAL(change(i, -1), 0);
  CHECK_EQUAL(change(made - 1, 1), 0);
  CHECK_EQUAL(semctl(id, 0, IPC_RMID), 0);
  return succeed();
}
