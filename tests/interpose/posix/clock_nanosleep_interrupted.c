// SPDX-License-Identifier: Apache-2.0
// A handled signal interrupts clock_nanosleep: a relative sleep returns the remaining time, an
// absolute one does not.
#include "../small.h"

static void nothing(int signo) { (void)signo; }

int main(void) {
  struct timespec left = {-1, -1};
  handle(SIGALRM, nothing, SA_RESTART);
  ualarm(5000, 0);
  const struct timespec t = {30, 0};
  CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &left), EINTR);
  CHECK(left.tv_sec >= 20 && left.tv_sec < 30);
  left.tv_sec = -1;
  ualarm(5000, 0);
  const struct timespec until = in_ns(CLOCK_MONOTONIC, 30000 * MS);
  CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, &left), EINTR);
  CHECK_EQUAL(left.tv_sec, -1);
  return succeed();
}
