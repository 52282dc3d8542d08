// SPDX-License-Identifier: Apache-2.0
// A process-shared barrier in shared memory, between a parent and its child.
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  struct {
    pthread_barrier_t barrier;
    int stage;
  }* p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_barrierattr_t a;
  int shared = -1, status;
  pthread_barrierattr_init(&a);
  CHECK_EQUAL(pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
  CHECK_EQUAL(pthread_barrierattr_getpshared(&a, &shared), 0);
  CHECK_EQUAL(shared, PTHREAD_PROCESS_SHARED);
  CHECK_EQUAL(pthread_barrier_init(&p->barrier, &a, 2), 0);
  const pid_t child = fork();
  if (child == 0) {
    sleep_ms(3);
    p->stage = 1;
    pthread_barrier_wait(&p->barrier);
    pthread_barrier_wait(&p->barrier);
    _exit(p->stage == 2 ? 0 : 1);
  }
  pthread_barrier_wait(&p->barrier);
  CHECK_EQUAL(p->stage, 1);
  p->stage = 2;
  pthread_barrier_wait(&p->barrier);
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  return succeed();
}
