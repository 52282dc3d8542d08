// SPDX-License-Identifier: Apache-2.0
// sched_getattr and calls through syscall(2) return the same policy and nice value as libc.
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/syscall.h>

#include "../small.h"

struct Attributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

int main(void) {
  struct Attributes a;
  const struct sched_param none = {0};
  memset(&a, 0, sizeof a);
  CHECK_EQUAL(sched_setscheduler(0, SCHED_OTHER, &none), 0);
  CHECK_EQUAL(syscall(SYS_sched_getattr, 0, &a, sizeof a, 0), 0);
  CHECK_EQUAL(a.policy, SCHED_OTHER);
  CHECK_EQUAL(a.nice, getpriority(PRIO_PROCESS, 0));
  CHECK_EQUAL(a.priority, 0);
  CHECK_EQUAL(syscall(SYS_sched_getscheduler, 0), SCHED_OTHER);
  CHECK_EQUAL(sched_setscheduler(0, SCHED_BATCH, &none), 0);
  CHECK_EQUAL(syscall(SYS_sched_getscheduler, 0), SCHED_BATCH);
  CHECK_EQUAL(syscall(SYS_sched_getattr, 0, &a, sizeof a, 0), 0);
  CHECK_EQUAL(a.policy, SCHED_BATCH);
  memset(&a, 0, sizeof a);
  a.size = sizeof a;
  a.policy = SCHED_IDLE;
  a.nice = 7;
  CHECK_EQUAL(syscall(SYS_sched_setattr, 0, &a, 0), 0);
  CHECK_EQUAL(sched_getscheduler(0), SCHED_IDLE);
  CHECK_EQUAL(syscall(SYS_sched_getattr, 0, &a, 8, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
