// SPDX-License-Identifier: Apache-2.0
// getcontext, swapcontext and setcontext save and restore the mask of blocked signals.
#include <ucontext.h>

#include "../small.h"

static ucontext_t first, second, again;
static char memory[65536];
static int step;

static int is_blocked(int signo) {
  sigset_t now;
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
  return sigismember(&now, signo);
}

static void run(void) {
  CHECK_EQUAL(is_blocked(SIGUSR1), 1);
  CHECK_EQUAL(is_blocked(SIGUSR2), 0);
  block_signal(SIGUSR2);
  CHECK_EQUAL(swapcontext(&second, &first), 0);
  CHECK_EQUAL(is_blocked(SIGUSR2), 1);
  CHECK_EQUAL(is_blocked(SIGUSR1), 1);
  step = 2;
  swapcontext(&second, &first);
}

int main(void) {
  block_signal(SIGUSR1);
  CHECK_EQUAL(getcontext(&second), 0);
  second.uc_stack.ss_sp = memory;
  second.uc_stack.ss_size = sizeof memory;
  second.uc_link = NULL;
  makecontext(&second, run, 0);
  unblock_signal(SIGUSR1);
  CHECK_EQUAL(swapcontext(&first, &second), 0);
  CHECK_EQUAL(is_blocked(SIGUSR1), 0);
  CHECK_EQUAL(is_blocked(SIGUSR2), 0);
  CHECK_EQUAL(swapcontext(&first, &second), 0);
  CHECK_EQUAL(step, 2);
  CHECK_EQUAL(is_blocked(SIGUSR2), 0);
  block_signal(SIGHUP);
  volatile int times = 0;
  CHECK_EQUAL(getcontext(&again), 0);
  CHECK_EQUAL(is_blocked(SIGHUP), 1);
  if (times++ == 0) {
    unblock_signal(SIGHUP);
    setcontext(&again);
    CHECK(0);
  }
  CHECK_EQUAL(times, 2);
  return succeed();
}
