// SPDX-License-Identifier: Apache-2.0
// A handler on the stack of sigaltstack may jump out of it; the next handler runs on it again. Each
// thread has its own alternate stack.
#define _GNU_SOURCE
#include <setjmp.h>

#include "../small.h"

static __thread char* stack;
static __thread sigjmp_buf where;
static const size_t kSize = 64 * 1024;
static void leave(int signo) {
  char here;
  (void)signo;
  CHECK(&here >= stack && &here < stack + kSize);
  siglongjmp(where, 5);
}
static void* jumps(void* x) {
  stack = malloc(kSize);
  const stack_t s = {.ss_sp = stack, .ss_size = kSize};
  CHECK_EQUAL(sigaltstack(&s, NULL), 0);
  for (volatile int i = 0; i < 3; ++i) {
    const int value = sigsetjmp(where, 1);
    if (value == 0) {
      CHECK_EQUAL(raise(SIGUSR1), 0);
      CHECK(0);
    }
    CHECK_EQUAL(value, 5);
    stack_t now;
    CHECK_EQUAL(sigaltstack(NULL, &now), 0);
    CHECK_EQUAL(now.ss_flags & SS_ONSTACK, 0);
  }
  return x;
}

int main(void) {
  handle(SIGUSR1, leave, SA_ONSTACK);
  const pthread_t t = start(jumps, NULL);
  jumps(NULL);
  join(t);
  return succeed();
}
