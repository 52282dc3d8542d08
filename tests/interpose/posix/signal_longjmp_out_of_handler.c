// SPDX-License-Identifier: Apache-2.0
// siglongjmp leaves a handler and restores the mask.
#define _GNU_SOURCE
#include <setjmp.h>

#include "../small.h"

static sigjmp_buf back;
static void jump(int signo) { siglongjmp(back, signo); }

int main(void) {
  handle(SIGUSR1, jump, 0);
  for (int i = 0; i < 3; ++i) {
    if (sigsetjmp(back, 1) == 0) {
      raise(SIGUSR1);
      CHECK(0);
    }
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    CHECK_EQUAL(sigismember(&mask, SIGUSR1), 0);
  }
  return succeed();
}
