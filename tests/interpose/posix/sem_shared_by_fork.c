// SPDX-License-Identifier: Apache-2.0
// A process-shared semaphore in anonymous shared memory, both directions.
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  sem_t* s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int status;
  CHECK_EQUAL(sem_init(&s[0], 1, 0), 0);
  CHECK_EQUAL(sem_init(&s[1], 1, 0), 0);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 10; ++i) {
      CHECK_EQUAL(sem_wait(&s[0]), 0);
      CHECK_EQUAL(sem_post(&s[1]), 0);
    }
    _exit(0);
  }
  for (int i = 0; i < 10; ++i) {
    CHECK_EQUAL(sem_post(&s[0]), 0);
    CHECK_EQUAL(sem_wait(&s[1]), 0);
  }
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  return succeed();
}
