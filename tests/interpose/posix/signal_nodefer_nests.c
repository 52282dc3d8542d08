// SPDX-License-Identifier: Apache-2.0
// With SA_NODEFER a handler is interrupted by its own signal, without it the signal waits for the
// handler's end; sa_mask blocks others.
#include "../small.h"

static volatile sig_atomic_t depth, deepest, calls, others;

static void again(int signo) {
  ++calls;
  if (++depth > deepest) deepest = depth;
  if (calls < 4) CHECK_EQUAL(raise(signo), 0);
  --depth;
}
static void other(int signo) {
  (void)signo;
  CHECK_EQUAL(depth, 0);
  ++others;
}
static void with_other(int signo) {
  (void)signo;
  ++depth;
  CHECK_EQUAL(raise(SIGUSR2), 0);
  CHECK_EQUAL(others, 0);
  --depth;
}

int main(void) {
  handle(SIGUSR1, again, SA_NODEFER);
  CHECK_EQUAL(raise(SIGUSR1), 0);
  CHECK_EQUAL(calls, 4);
  CHECK_EQUAL(deepest, 4);
  calls = deepest = 0;
  handle(SIGUSR1, again, 0);
  CHECK_EQUAL(raise(SIGUSR1), 0);
  CHECK_EQUAL(calls, 4);
  CHECK_EQUAL(deepest, 1);
  handle(SIGUSR2, other, 0);
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = with_other;
  sigaddset(&a.sa_mask, SIGUSR2);
  CHECK_EQUAL(sigaction(SIGUSR1, &a, NULL), 0);
  CHECK_EQUAL(raise(SIGUSR1), 0);
  CHECK_EQUAL(others, 1);
  return succeed();
}
