// SPDX-License-Identifier: Apache-2.0
// Arguments that timer_create and timer_settime refuse.
#include "../small.h"

int main(void) {
  struct sigevent e;
  timer_t t;
  memset(&e, 0, sizeof e);
  e.sigev_notify = SIGEV_SIGNAL;
  e.sigev_signo = 1000;
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, &e, &t), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(timer_create(12345, NULL, &t), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, NULL, &t), 0);
  const struct itimerspec bad = {{0, 0}, {0, 1000000000}};
  CHECK_EQUAL(timer_settime(t, 0, &bad, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(timer_delete(t), 0);
  struct itimerspec v;
  CHECK_EQUAL(timer_gettime(t, &v), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(timer_getoverrun(t), -1);
  CHECK_EQUAL(timer_delete(t), -1);
  return succeed();
}
