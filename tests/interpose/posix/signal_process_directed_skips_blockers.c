// SPDX-License-Identifier: Apache-2.0
// A signal to the process is delivered to a thread that does not block it.
#include "../small.h"

static pthread_t handled_by;
static volatile int rung;
static void ring(int signo) {
  handled_by = pthread_self();
  rung += signo == SIGUSR1;
}
static void* wait_for_it(void* x) {
  unblock_signal(SIGUSR1);
  while (rung == 0) usleep(500);
  return x;
}

int main(void) {
  handle(SIGUSR1, ring, 0);
  block_signal(SIGUSR1);
  const pthread_t t = start(wait_for_it, NULL);
  kill(getpid(), SIGUSR1);
  join(t);
  CHECK(pthread_equal(handled_by, t));
  return succeed();
}
