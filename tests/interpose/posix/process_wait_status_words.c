// SPDX-License-Identifier: Apache-2.0
// The status word distinguishes an exit, with eight bits of its status, from a death by a signal.
#define _GNU_SOURCE
#include "../child.h"

static int exits(int status) { return status; }
static int is_killed(int signo) {
  kill(getpid(), signo);
  pause();
  return 0;
}

int main(void) {
  const int codes[] = {0, 1, 77, 255};
  for (int i = 0; i < 4; ++i) {
    const int status = status_of(start_process(exits, codes[i]));
    CHECK(WIFEXITED(status) && !WIFSIGNALED(status) && !WIFSTOPPED(status));
    CHECK_EQUAL(WEXITSTATUS(status), codes[i]);
  }
  CHECK_EQUAL(WEXITSTATUS(status_of(start_process(exits, 0x1234))), 0x34);
  const int signals[] = {SIGKILL, SIGTERM, SIGUSR1, SIGALRM};
  for (int i = 0; i < 4; ++i) {
    const int status = status_of(start_process(is_killed, signals[i]));
    CHECK(WIFSIGNALED(status) && !WIFEXITED(status));
    CHECK_EQUAL(WTERMSIG(status), signals[i]);
  }
  return succeed();
}
