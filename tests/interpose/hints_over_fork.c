// SPDX-License-Identifier: Apache-2.0
// A soft barrier belongs to one process: a thread that waits in the parent's does not in the
// child's.
//
// solo: --parallel
#include "../../hints/crane.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "check.h"

enum { kYields = 50 };
static volatile int in_line, came;

static void* soft_barrier(void* x) {
  in_line = 1;
  crane_soft_barrier(0);
  return x;
}

// Some thread is always runnable: the soft barrier waits for it.
static void* come_late(void* x) {
  for (int i = 0; i < kYields; ++i) sched_yield();
  came = 1;
  crane_soft_barrier(0);
  return x;
}

int main(void) {
  pthread_t t;
  crane_soft_barrier_init(0, 2, 1000000000);
  CHECK(pthread_create(&t, NULL, soft_barrier, NULL) == 0);
  while (!in_line) sched_yield();
  for (int i = 0; i < kYields; ++i) sched_yield();
  const pid_t child = fork();
  if (child == 0) {
    pthread_t late;
    CHECK(pthread_create(&late, NULL, come_late, NULL) == 0);
    crane_soft_barrier(0);
    printf("the other one %s\n", came ? "came" : "was not waited for");
    CHECK(pthread_join(late, NULL) == 0);
    fflush(stdout);
    _exit(0);
  }
  crane_soft_barrier(0);
  CHECK(pthread_join(t, NULL) == 0);
  int status = -1;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  return succeed();
}
