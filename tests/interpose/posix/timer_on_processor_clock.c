// SPDX-License-Identifier: Apache-2.0
// A timer on the processor clock expires while the process works, not while it sleeps.
// parallel: no
#include "../small.h"

static volatile int rung;
static void ring(int signo) { rung = signo; }

int main(void) {
  timer_t t;
  handle(SIGALRM, ring, SA_RESTART);
  CHECK_EQUAL(timer_create(CLOCK_PROCESS_CPUTIME_ID, NULL, &t), 0);
  const struct itimerspec v = {{0, 0}, {0, 30 * MS}};
  CHECK_EQUAL(timer_settime(t, 0, &v, NULL), 0);
  sleep_ms(40);
  CHECK_EQUAL(rung, 0);
  while (rung == 0) sched_yield();
  return succeed();
}
