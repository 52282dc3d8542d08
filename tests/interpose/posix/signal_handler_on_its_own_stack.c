// SPDX-License-Identifier: Apache-2.0
// A handler with SA_ONSTACK runs on the stack of sigaltstack; others run on the thread's.
#define _GNU_SOURCE
#include "../small.h"

static char* stack;
static const size_t kSize = 64 * 1024;
static volatile int on_it;
static void look(int signo) {
  char here;
  stack_t now;
  (void)signo;
  on_it = &here >= stack && &here < stack + kSize;
  CHECK_EQUAL(sigaltstack(NULL, &now), 0);
  CHECK_EQUAL((now.ss_flags & SS_ONSTACK) != 0, on_it);
}

int main(void) {
  stack = malloc(kSize);
  const stack_t s = {.ss_sp = stack, .ss_size = kSize};
  CHECK_EQUAL(sigaltstack(&s, NULL), 0);
  handle(SIGUSR1, look, SA_ONSTACK);
  CHECK_EQUAL(raise(SIGUSR1), 0);
  CHECK_EQUAL(on_it, 1);
  handle(SIGUSR1, look, 0);
  CHECK_EQUAL(raise(SIGUSR1), 0);
  CHECK_EQUAL(on_it, 0);
  handle(SIGUSR1, look, SA_ONSTACK);
  CHECK_EQUAL(kill(getpid(), SIGUSR1), 0);
  CHECK_EQUAL(on_it, 1);
  return succeed();
}
