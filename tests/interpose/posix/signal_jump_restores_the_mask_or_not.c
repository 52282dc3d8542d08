// SPDX-License-Identifier: Apache-2.0
// siglongjmp out of a handler restores the mask, if sigsetjmp was called to save it.
#include <setjmp.h>

#include "../small.h"

static sigjmp_buf where;
static void leave(int signo) { siglongjmp(where, signo); }

static int is_blocked(int signo) {
  sigset_t now;
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
  return sigismember(&now, signo);
}

int main(void) {
  handle(SIGUSR1, leave, 0);
  for (int i = 0; i < 3; ++i) {
    if (sigsetjmp(where, 1) == 0) {
      raise(SIGUSR1);
      CHECK(0);
    }
    CHECK_EQUAL(is_blocked(SIGUSR1), 0);
  }
  const int way = sigsetjmp(where, 0);
  if (way == 0) raise(SIGUSR1);
  CHECK_EQUAL(way, SIGUSR1);
  CHECK_EQUAL(is_blocked(SIGUSR1), 1);
  raise(SIGUSR1);
  if (sigsetjmp(where, 0) == 0) {
    unblock_signal(SIGUSR1);
    CHECK(0);
  }
  CHECK_EQUAL(is_blocked(SIGUSR1), 1);
  unblock_signal(SIGUSR1);
  block_signal(SIGUSR2);
  if (sigsetjmp(where, 1) == 0) {
    unblock_signal(SIGUSR2);
    raise(SIGUSR1);
  }
  CHECK_EQUAL(is_blocked(SIGUSR1), 0);
  CHECK_EQUAL(is_blocked(SIGUSR2), 1);
  return succeed();
}
