// SPDX-License-Identifier: Apache-2.0
// A SIGABRT handler that jumps out saves the process, each time; a handler that returns does not,
// and neither does blocking or ignoring the signal.
#include <setjmp.h>

#include "../child.h"

static sigjmp_buf where;
static volatile sig_atomic_t calls;
static void leave(int signo) {
  CHECK_EQUAL(signo, SIGABRT);
  ++calls;
  siglongjmp(where, 1);
}
static void come_back(int signo) { (void)signo; }

static int aborts(int how) {
  if (how == 0) signal(SIGABRT, SIG_IGN);
  if (how == 1) block_signal(SIGABRT);
  if (how == 2) handle(SIGABRT, come_back, 0);
  abort();
}

int main(void) {
  handle(SIGABRT, leave, 0);
  for (volatile int i = 0; i < 3; ++i) {
    if (sigsetjmp(where, 1) == 0) {
      abort();
      CHECK(0);
    }
    CHECK_EQUAL(calls, i + 1);
  }
  signal(SIGABRT, SIG_DFL);
  for (int how = 0; how < 4; ++how) {
    const int status = status_of(start_process(aborts, how));
    CHECK(WIFSIGNALED(status));
    CHECK_EQUAL(WTERMSIG(status), SIGABRT);
  }
  return succeed();
}
