// SPDX-License-Identifier: Apache-2.0
// During a handler its own signal and those of sa_mask are blocked; with SA_NODEFER its own is not.
#include "../small.h"

static volatile int depth, deepest, other_in_handler, in_first;
static void second(int signo) {
  (void)signo;
  other_in_handler = in_first;
}
static void first(int signo) {
  in_first = 1;
  if (++depth > deepest) deepest = depth;
  if (depth < 3) raise(signo);
  raise(SIGUSR2);
  in_first = 0;
  --depth;
}

static void install(int flags) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = first;
  a.sa_flags = flags;
  sigaddset(&a.sa_mask, SIGUSR2);
  CHECK_EQUAL(sigaction(SIGUSR1, &a, NULL), 0);
}

int main(void) {
  handle(SIGUSR2, second, 0);
  install(SA_NODEFER);
  raise(SIGUSR1);
  CHECK_EQUAL(deepest, 3);
  CHECK_EQUAL(other_in_handler, 0);
  sigset_t mask;
  sigprocmask(SIG_BLOCK, NULL, &mask);
  CHECK_EQUAL(sigismember(&mask, SIGUSR1), 0);
  CHECK_EQUAL(sigismember(&mask, SIGUSR2), 0);
  return succeed();
}
