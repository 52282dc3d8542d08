// SPDX-License-Identifier: Apache-2.0
// A parent sets and reads the policy of its child, and the child has that policy.
#define _GNU_SOURCE
#include <sys/mman.h>

#include "../child.h"

static sem_t* shared;

static int stand(int unused) {
  CHECK_EQUAL(sched_getscheduler(0), SCHED_OTHER);
  CHECK_EQUAL(sem_post(&shared[0]), 0);
  CHECK_EQUAL(sem_wait(&shared[1]), 0);
  CHECK_EQUAL(sched_getscheduler(0), SCHED_BATCH);
  return unused;
}

int main(void) {
  const struct sched_param none = {0};
  shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  CHECK_EQUAL(sem_init(&shared[0], 1, 0), 0);
  CHECK_EQUAL(sem_init(&shared[1], 1, 0), 0);
  const pid_t child = start_process(stand, 0);
  CHECK_EQUAL(sem_wait(&shared[0]), 0);
  CHECK_EQUAL(sched_getscheduler(child), SCHED_OTHER);
  CHECK_EQUAL(sched_setscheduler(child, SCHED_BATCH, &none), 0);
  CHECK_EQUAL(sched_getscheduler(child), SCHED_BATCH);
  CHECK_EQUAL(sem_post(&shared[1]), 0);
  CHECK_EQUAL(status_of(child), 0);
  return succeed();
}
