// SPDX-License-Identifier: Apache-2.0
// An absolute timer does not expire before its time by the clock; a time in the past expires at
// once.
#include "../small.h"

int main(void) {
  block_signal(SIGALRM);
  const sigset_t set = set_of_signal(SIGALRM);
  timer_t t;
  int got;
  CHECK_EQUAL(timer_create(CLOCK_REALTIME, NULL, &t), 0);
  struct itimerspec v = {{0, 0}, in_ns(CLOCK_REALTIME, 10 * MS)};
  CHECK_EQUAL(timer_settime(t, TIMER_ABSTIME, &v, NULL), 0);
  CHECK_EQUAL(sigwait(&set, &got), 0);
  CHECK(now_ns(CLOCK_REALTIME) >= v.it_value.tv_sec * 1000000000LL + v.it_value.tv_nsec);
  v.it_value = timespec_of(1);
  CHECK_EQUAL(timer_settime(t, TIMER_ABSTIME, &v, NULL), 0);
  CHECK_EQUAL(sigwait(&set, &got), 0);
  return succeed();
}
