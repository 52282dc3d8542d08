// SPDX-License-Identifier: Apache-2.0
// A spin lock in shared memory excludes processes.
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/wait.h>

#include "../small.h"

struct Shared {
  pthread_spinlock_t lock;
  int total;
};

static void add(struct Shared* p) {
  for (int i = 0; i < 50; ++i) {
    CHECK_EQUAL(pthread_spin_lock(&p->lock), 0);
    const int seen = p->total;
    if (i % 10 == 0) sched_yield();
    p->total = seen + 1;
    CHECK_EQUAL(pthread_spin_unlock(&p->lock), 0);
  }
}

int main(void) {
  struct Shared* p =
      mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int status;
  CHECK_EQUAL(pthread_spin_init(&p->lock, PTHREAD_PROCESS_SHARED), 0);
  const pid_t child = fork();
  add(p);
  if (child == 0) _exit(0);
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  CHECK_EQUAL(p->total, 100);
  return succeed();
}
