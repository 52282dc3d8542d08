// SPDX-License-Identifier: Apache-2.0
// timer_gettime returns the remaining time while a timer is armed, and zeros before, and after it
// expired or was stopped. timer_settime with only an interval does not arm it.
#include "../small.h"

static struct itimerspec reading(timer_t t) {
  struct itimerspec v;
  memset(&v, 0x55, sizeof v);
  CHECK_EQUAL(timer_gettime(t, &v), 0);
  return v;
}

static void is_zero(timer_t t) {
  const struct itimerspec v = reading(t);
  CHECK_EQUAL(v.it_value.tv_sec, 0);
  CHECK_EQUAL(v.it_value.tv_nsec, 0);
  CHECK_EQUAL(v.it_interval.tv_sec, 0);
  CHECK_EQUAL(v.it_interval.tv_nsec, 0);
}

int main(void) {
  timer_t t;
  struct sigevent e;
  memset(&e, 0, sizeof e);
  e.sigev_notify = SIGEV_SIGNAL;
  e.sigev_signo = SIGUSR1;
  block_signal(SIGUSR1);
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, &e, &t), 0);
  is_zero(t);
  const struct itimerspec far = {{3, 0}, {100, 0}}, soon = {{0, 0}, {0, MS}};
  const struct itimerspec interval = {{5, 0}, {0, 0}}, fast = {{0, 40 * MS}, {0, MS}};
  CHECK_EQUAL(timer_settime(t, 0, &far, NULL), 0);
  struct itimerspec v = reading(t);
  CHECK(v.it_value.tv_sec >= 90 && v.it_value.tv_sec <= 100);
  CHECK_EQUAL(v.it_interval.tv_sec, 3);
  CHECK_EQUAL(timer_settime(t, 0, &soon, &v), 0);
  CHECK_EQUAL(v.it_interval.tv_sec, 3);
  sleep_ms(3);
  is_zero(t);
  CHECK_EQUAL(timer_settime(t, 0, &fast, NULL), 0);
  sleep_ms(3);
  v = reading(t);
  CHECK(v.it_value.tv_sec == 0 && v.it_value.tv_nsec > 0 && v.it_value.tv_nsec <= 40 * MS);
  CHECK_EQUAL(v.it_interval.tv_nsec, 40 * MS);
  CHECK_EQUAL(timer_settime(t, 0, &interval, NULL), 0);
  is_zero(t);
  CHECK_EQUAL(timer_delete(t), 0);
  return succeed();
}
