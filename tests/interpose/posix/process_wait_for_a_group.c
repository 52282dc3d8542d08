// SPDX-License-Identifier: Apache-2.0
// waitpid with a negative number waits for the children of that process group only.
#define _GNU_SOURCE
#include "../child.h"

static int waits(int from) {
  char c;
  return read(from, &c, 1) == 1 ? 3 : 4;
}
static int ends(int x) { return x; }

int main(void) {
  int fds[2], status;
  CHECK_EQUAL(pipe(fds), 0);
  const pid_t slow = start_process(waits, fds[0]);
  CHECK_EQUAL(setpgid(slow, slow), 0);
  const pid_t quick = start_process(ends, 2);
  CHECK_EQUAL(waitpid(-slow, &status, WNOHANG), 0);
  CHECK_EQUAL(waitpid(0, &status, 0), quick);
  CHECK_EQUAL(waitpid(0, &status, 0), -1);
  CHECK_EQUAL(errno, ECHILD);
  CHECK_EQUAL(write(fds[1], "x", 1), 1);
  CHECK_EQUAL(waitpid(-slow, &status, 0), slow);
  CHECK_EQUAL(WEXITSTATUS(status), 3);
  return succeed();
}
