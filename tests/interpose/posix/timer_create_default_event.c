// SPDX-License-Identifier: Apache-2.0
// timer_create without an event: SIGALRM.
#include "../small.h"

static volatile int rung;
static void ring(int signo) { rung = signo; }

int main(void) {
  timer_t t;
  handle(SIGALRM, ring, 0);
  CHECK_EQUAL(timer_create(CLOCK_REALTIME, NULL, &t), 0);
  const struct itimerspec in5 = {{0, 0}, {0, 5 * MS}};
  CHECK_EQUAL(timer_settime(t, 0, &in5, NULL), 0);
  const struct timespec long_time = {20, 0};
  CHECK_EQUAL(nanosleep(&long_time, NULL), -1);
  CHECK_EQUAL(rung, SIGALRM);
  return succeed();
}
