// SPDX-License-Identifier: Apache-2.0
// Writing to a pipe without readers kills by SIGPIPE, or returns EPIPE if that is ignored.
#define _GNU_SOURCE
#include "../child.h"

static int writes(int to) {
  const ssize_t n = write(to, "x", 1);
  return n == 1 ? 1 : 2;
}

int main(void) {
  int fds[2];
  CHECK_EQUAL(pipe(fds), 0);
  close(fds[0]);
  const int status = status_of(start_process(writes, fds[1]));
  CHECK(WIFSIGNALED(status));
  CHECK_EQUAL(WTERMSIG(status), SIGPIPE);
  handle(SIGPIPE, SIG_IGN, 0);
  CHECK_EQUAL(write(fds[1], "x", 1), -1);
  CHECK_EQUAL(errno, EPIPE);
  return succeed();
}
