// SPDX-License-Identifier: Apache-2.0
// sigaltstack refuses a stack that is too small, unknown flags, and a change of the stack in use;
// it returns the old setting.
#include "../small.h"

static char memory[65536], other[65536];
static volatile sig_atomic_t seen;

static void look(int signo) {
  (void)signo;
  stack_t now;
  const stack_t another = {.ss_sp = other, .ss_size = sizeof other};
  CHECK_EQUAL(sigaltstack(NULL, &now), 0);
  CHECK_EQUAL(now.ss_flags, SS_ONSTACK);
  CHECK(now.ss_sp == memory);
  CHECK_EQUAL(now.ss_size, sizeof memory);
  CHECK_EQUAL(sigaltstack(&another, NULL), -1);
  CHECK_EQUAL(errno, EPERM);
  ++seen;
}

static void* has_none(void* unused) {
  stack_t now;
  CHECK_EQUAL(sigaltstack(NULL, &now), 0);
  CHECK_EQUAL(now.ss_flags, SS_DISABLE);
  return unused;
}

int main(void) {
  stack_t now, s = {.ss_sp = memory, .ss_size = 1024};
  CHECK_EQUAL(sigaltstack(NULL, &now), 0);
  CHECK_EQUAL(now.ss_flags, SS_DISABLE);
  CHECK_EQUAL(sigaltstack(&s, NULL), -1);
  CHECK_EQUAL(errno, ENOMEM);
  s.ss_size = sizeof memory;
  s.ss_flags = 0x1000;
  CHECK_EQUAL(sigaltstack(&s, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  s.ss_flags = 0;
  CHECK_EQUAL(sigaltstack(&s, &now), 0);
  CHECK_EQUAL(now.ss_flags, SS_DISABLE);
  handle(SIGUSR1, look, SA_ONSTACK);
  raise(SIGUSR1);
  CHECK_EQUAL(seen, 1);
  elsewhere(has_none, NULL);
  s.ss_flags = SS_DISABLE;
  CHECK_EQUAL(sigaltstack(&s, &now), 0);
  CHECK(now.ss_sp == memory);
  CHECK_EQUAL(now.ss_flags, 0);
  CHECK_EQUAL(sigaltstack(NULL, &now), 0);
  CHECK_EQUAL(now.ss_flags, SS_DISABLE);
  CHECK_EQUAL(now.ss_size, 0);
  CHECK(now.ss_sp == NULL);
  return succeed();
}
