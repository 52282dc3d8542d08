// SPDX-License-Identifier: Apache-2.0
// Of two threads in sigwait one gets a signal of the process.
#include "../small.h"

static int got;
static void* wait_for_it(void* x) {
  const sigset_t set = set_of_signal(SIGUSR1);
  int signo = 0;
  CHECK_EQUAL(sigwait(&set, &signo), 0);
  CHECK_EQUAL(signo, SIGUSR1);
  __atomic_fetch_add(&got, 1, __ATOMIC_SEQ_CST);
  return x;
}

int main(void) {
  block_signal(SIGUSR1);
  const pthread_t a = start(wait_for_it, NULL), b = start(wait_for_it, NULL);
  sleep_ms(5);
  kill(getpid(), SIGUSR1);
  sleep_ms(10);
  CHECK_EQUAL(__atomic_load_n(&got, __ATOMIC_SEQ_CST), 1);
  kill(getpid(), SIGUSR1);
  join(a);
  join(b);
  return succeed();
}
