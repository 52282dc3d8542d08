// SPDX-License-Identifier: Apache-2.0
// timer_create: clocks without timers are not supported; unknown clocks are invalid, and so are bad
// signals, kinds and threads; a deleted timer no longer exists.
#include "../small.h"

static void refuses(clockid_t clock, int notify, int signo, int error) {
  timer_t t;
  struct sigevent e;
  memset(&e, 0, sizeof e);
  e.sigev_notify = notify;
  e.sigev_signo = signo;
  CHECK_EQUAL(timer_create(clock, &e, &t), -1);
  CHECK_EQUAL(errno, error);
}

int main(void) {
  refuses(99, SIGEV_NONE, 0, EINVAL);
  refuses(CLOCK_MONOTONIC, SIGEV_SIGNAL, 0, EINVAL);
  refuses(CLOCK_MONOTONIC, SIGEV_SIGNAL, 65, EINVAL);
  refuses(CLOCK_MONOTONIC, SIGEV_SIGNAL, -1, EINVAL);
  refuses(CLOCK_MONOTONIC, 77, SIGUSR1, EINVAL);
  refuses(CLOCK_MONOTONIC, SIGEV_THREAD_ID, SIGUSR1, EINVAL);
  timer_t t;
  CHECK_EQUAL(timer_create(CLOCK_BOOTTIME, NULL, &t), 0);
  const struct itimerspec bad = {{0, 0}, {0, 1000000000}}, v = {{0, 0}, {100, 0}};
  struct itimerspec got;
  CHECK_EQUAL(timer_settime(t, 0, &bad, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(timer_settime(t, 0, &v, NULL), 0);
  CHECK_EQUAL(timer_delete(t), 0);
  CHECK_EQUAL(timer_gettime(t, &got), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(timer_delete(t), -1);
  CHECK_EQUAL(errno, EINVAL);
  refuses(CLOCK_MONOTONIC_RAW, SIGEV_NONE, 0, EOPNOTSUPP);
  refuses(CLOCK_MONOTONIC_COARSE, SIGEV_NONE, 0, EOPNOTSUPP);
  refuses(CLOCK_REALTIME_COARSE, SIGEV_NONE, 0, EOPNOTSUPP);
  return succeed();
}
