// SPDX-License-Identifier: Apache-2.0
// sigaction refuses SIGKILL, SIGSTOP and invalid signal numbers, and returns the old action.
#include "../small.h"

static void nothing(int signo) { (void)signo; }

int main(void) {
  struct sigaction a, old;
  memset(&a, 0, sizeof a);
  a.sa_handler = nothing;
  a.sa_flags = SA_RESTART;
  CHECK_EQUAL(sigaction(SIGKILL, &a, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(sigaction(SIGSTOP, &a, NULL), -1);
  CHECK_EQUAL(sigaction(0, &a, NULL), -1);
  CHECK_EQUAL(sigaction(1000, &a, NULL), -1);
  CHECK_EQUAL(sigaction(SIGUSR1, &a, &old), 0);
  CHECK(old.sa_handler == SIG_DFL);
  CHECK_EQUAL(sigaction(SIGUSR1, NULL, &old), 0);
  CHECK(old.sa_handler == nothing);
  CHECK((old.sa_flags & SA_RESTART) != 0);
  return succeed();
}
