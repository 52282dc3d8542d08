// SPDX-License-Identifier: Apache-2.0
// Handlers run on the stack set by a sigaltstack that bypasses libc, then on the next one, and on
// none when it is removed.
#define _GNU_SOURCE
#include <sys/syscall.h>

#include "../small.h"

static char stacks[2][64 * 1024];
static volatile int on;  // 1 + the index of the stack

static void look(int signo) {
  char here;
  (void)signo;
  on = 0;
  for (int i = 0; i < 2; ++i) {
    if (&here >= stacks[i] && &here < stacks[i] + sizeof stacks[i]) on = 1 + i;
  }
}

static long set(const stack_t* s, stack_t* old) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(SYS_sigaltstack), "D"(s), "S"(old)
                   : "rcx", "r11", "memory");
  return result;
}

int main(void) {
  stack_t first = {.ss_sp = stacks[0], .ss_size = sizeof stacks[0]}, second = first, old;
  second.ss_sp = stacks[1];
  handle(SIGUSR1, look, SA_ONSTACK);
  CHECK_EQUAL(set(&first, NULL), 0);
  CHECK_EQUAL(raise(SIGUSR1), 0);
  CHECK_EQUAL(on, 1);
  CHECK_EQUAL(set(&second, &old), 0);
  CHECK(old.ss_sp == stacks[0]);
  CHECK_EQUAL(raise(SIGUSR1), 0);
  CHECK_EQUAL(on, 2);
  CHECK_EQUAL(sigaltstack(NULL, &old), 0);
  CHECK(old.ss_sp == stacks[1]);
  first.ss_flags = SS_DISABLE;
  CHECK_EQUAL(set(&first, NULL), 0);
  CHECK_EQUAL(raise(SIGUSR1), 0);
  CHECK_EQUAL(on, 0);
  return succeed();
}
