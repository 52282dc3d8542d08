// SPDX-License-Identifier: Apache-2.0
// says: limit: .*timers
// Timers are made until the limit (EAGAIN); deleting one makes room for another, which expires.
#include "../limit.h"

#define MOST 1100

static timer_t timers[MOST];

int main(void) {
  struct sigevent silent = {.sigev_notify = SIGEV_NONE};
  int made = 0, refusals = 0;
  while (made < MOST && refusals < 20) {
    if (timer_create(CLOCK_MONOTONIC, &silent, &timers[made]) == 0) {
      ++made;
    } else {
      check_refusal(errno, EAGAIN, ENOMEM, 0);
      ++refusals;
    }
  }
  CHECK(made > 100);
  CHECK_EQUAL(timer_delete(timers[made / 2]), 0);
  block_signal(SIGUSR1);
  struct sigevent loud = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, &loud, &timers[made / 2]), 0);
  const struct itimerspec soon = {{0, 0}, {0, MS}};
  CHECK_EQUAL(timer_settime(timers[made / 2], 0, &soon, NULL), 0);
  const sigset_t set = set_of_signal(SIGUSR1);
  CHECK_EQUAL(sigwaitinfo(&set, NULL), SIGUSR1);
  for (int i = 0; i < made; ++i) CHECK_EQUAL(timer_delete(timers[i]), 0);
  return succeed();
}
