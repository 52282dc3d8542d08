// SPDX-License-Identifier: Apache-2.0
// sigpending returns the thread's own signals and the process'; signals pending for a thread are
// lost at its end, and none is pending after fork.
#include "../child.h"

static int is_pending(int signo) {
  sigset_t set;
  CHECK_EQUAL(sigpending(&set), 0);
  return sigismember(&set, signo);
}

static void* look(void* unused) {
  CHECK_EQUAL(is_pending(SIGUSR1), 0);
  CHECK_EQUAL(is_pending(SIGUSR2), 1);
  CHECK_EQUAL(pthread_kill(pthread_self(), SIGHUP), 0);
  CHECK_EQUAL(is_pending(SIGHUP), 1);
  return unused;
}

static int has_none(int unused) {
  sigset_t mask;
  CHECK_EQUAL(is_pending(SIGUSR1), 0);
  CHECK_EQUAL(is_pending(SIGUSR2), 0);
  CHECK_EQUAL(sigprocmask(SIG_BLOCK, NULL, &mask), 0);
  CHECK_EQUAL(sigismember(&mask, SIGUSR1), 1);
  CHECK_EQUAL(sigismember(&mask, SIGTERM), 0);
  return unused;
}

int main(void) {
  block_signal(SIGUSR1);
  block_signal(SIGUSR2);
  block_signal(SIGHUP);
  CHECK_EQUAL(is_pending(SIGUSR1), 0);
  CHECK_EQUAL(pthread_kill(pthread_self(), SIGUSR1), 0);
  CHECK_EQUAL(kill(getpid(), SIGUSR2), 0);
  CHECK_EQUAL(is_pending(SIGUSR1), 1);
  CHECK_EQUAL(is_pending(SIGUSR2), 1);
  elsewhere(look, NULL);
  CHECK_EQUAL(is_pending(SIGHUP), 0);
  CHECK_EQUAL(status_of(start_process(has_none, 0)), 0);
  CHECK_EQUAL(is_pending(SIGUSR1), 1);
  return succeed();
}
