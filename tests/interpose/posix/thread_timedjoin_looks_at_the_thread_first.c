// SPDX-License-Identifier: Apache-2.0
// pthread_timedjoin_np and pthread_clockjoin_np: a bad time is ignored if the thread has ended, a
// bad clock is always an error; a time in the past fails with ETIMEDOUT and the thread stays
// joinable.
#include <sys/syscall.h>

#include "../small.h"

static sem_t done;
static int id;

static void* stand(void* value) {
  __atomic_store_n(&id, gettid(), __ATOMIC_SEQ_CST);
  CHECK_EQUAL(sem_wait(&done), 0);
  return value;
}

int main(void) {
  void* result = NULL;
  const struct timespec bad = {0, 1000000000}, past = {1, 0};
  CHECK_EQUAL(sem_init(&done, 0, 0), 0);
  const pthread_t t = start(stand, &done);
  CHECK_EQUAL(pthread_timedjoin_np(t, &result, &past), ETIMEDOUT);
  CHECK_EQUAL(pthread_clockjoin_np(t, &result, CLOCK_MONOTONIC, &past), ETIMEDOUT);
  CHECK_EQUAL(pthread_clockjoin_np(t, &result, CLOCK_BOOTTIME, &past), EINVAL);
  const struct timespec soon = in_ns(CLOCK_MONOTONIC, 5 * MS);
  CHECK_EQUAL(pthread_clockjoin_np(t, &result, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
  CHECK(now_ns(CLOCK_MONOTONIC) >= soon.tv_sec * 1000000000LL + soon.tv_nsec);
  int thread = 0;
  while ((thread = __atomic_load_n(&id, __ATOMIC_SEQ_CST)) == 0) sched_yield();
  CHECK_EQUAL(sem_post(&done), 0);
  while (syscall(SYS_tgkill, getpid(), thread, 0) == 0) sched_yield();
  CHECK_EQUAL(pthread_timedjoin_np(t, &result, &bad), 0);
  CHECK(result == &done);
  return succeed();
}
