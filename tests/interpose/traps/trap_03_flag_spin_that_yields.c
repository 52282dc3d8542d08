// SPDX-License-Identifier: Apache-2.0
// An ad-hoc flag: the spinning thread yields, sleeps or polls between its looks, so the round robin
// reaches the one that sets it.  The stall rule is for a spin without any call (see
// runtime/preload/LIMITS.md).
// parallel: no
#define _GNU_SOURCE
#include <poll.h>

#include "../small.h"

static volatile int flag;

static void* spin(void* x) {
  const long how = (long)x;
  while (flag != how) {
    if (how == 1) sched_yield();
    if (how == 2) poll(NULL, 0, 0);
    if (how == 3) usleep(1);
    if (how == 4) time(NULL);
  }
  return x;
}

int main(void) {
  for (long how = 1; how <= 4; ++how) {
    const pthread_t t = start(spin, (void*)how);
    sleep_ms(2);
    flag = (int)how;
    join(t);
  }
  return succeed();
}
