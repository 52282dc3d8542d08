// SPDX-License-Identifier: Apache-2.0
// The priorities of each policy, and policies, priorities and processes that do not exist.
#include "../small.h"

static void refuses(int policy, int priority) {
  const struct sched_param p = {.sched_priority = priority};
  CHECK_EQUAL(sched_setscheduler(0, policy, &p), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(pthread_setschedparam(pthread_self(), policy, &p), EINVAL);
}

int main(void) {
  const int real_time[] = {SCHED_FIFO, SCHED_RR}, others[] = {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE};
  for (int i = 0; i < 2; ++i) {
    CHECK_EQUAL(sched_get_priority_min(real_time[i]), 1);
    CHECK_EQUAL(sched_get_priority_max(real_time[i]), 99);
    refuses(real_time[i], 0);
    refuses(real_time[i], 100);
  }
  for (int i = 0; i < 3; ++i) {
    CHECK_EQUAL(sched_get_priority_min(others[i]), 0);
    CHECK_EQUAL(sched_get_priority_max(others[i]), 0);
    refuses(others[i], 1);
  }
  CHECK_EQUAL(sched_get_priority_max(77), -1);
  CHECK_EQUAL(errno, EINVAL);
  refuses(77, 0);
  refuses(-1, 0);
  struct sched_param p;
  struct timespec t;
  CHECK_EQUAL(sched_getparam(-1, &p), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(sched_getparam(0x3ffffffe, &p), -1);
  CHECK_EQUAL(errno, ESRCH);
  CHECK_EQUAL(sched_rr_get_interval(-1, &t), -1);
  CHECK_EQUAL(errno, EINVAL);
  cpu_set_t set;
  CHECK_EQUAL(sched_getaffinity(-1, sizeof set, &set), -1);
  CHECK_EQUAL(errno, ESRCH);
  CHECK_EQUAL(sched_getaffinity(0, sizeof set, &set), 0);
  CHECK_EQUAL(sched_setaffinity(-1, sizeof set, &set), -1);
  CHECK_EQUAL(errno, ESRCH);
  pthread_attr_t a;
  int value = -1;
  CHECK_EQUAL(pthread_attr_init(&a), 0);
  CHECK_EQUAL(pthread_attr_getinheritsched(&a, &value), 0);
  CHECK_EQUAL(value, PTHREAD_INHERIT_SCHED);
  CHECK_EQUAL(pthread_attr_setinheritsched(&a, 77), EINVAL);
  CHECK_EQUAL(pthread_attr_setschedpolicy(&a, 77), EINVAL);
  CHECK_EQUAL(pthread_attr_setscope(&a, PTHREAD_SCOPE_PROCESS), ENOTSUP);
  p.sched_priority = 5;
  CHECK_EQUAL(pthread_attr_setschedparam(&a, &p), EINVAL);
  CHECK_EQUAL(pthread_attr_setschedpolicy(&a, SCHED_RR), 0);
  CHECK_EQUAL(pthread_attr_setschedparam(&a, &p), 0);
  return succeed();
}
