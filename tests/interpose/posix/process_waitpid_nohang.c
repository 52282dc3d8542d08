// SPDX-License-Identifier: Apache-2.0
// waitpid with WNOHANG returns 0 while the child lives, and its number once it has ended.
#define _GNU_SOURCE
#include "../child.h"

static int child(int from) {
  char c;
  return read(from, &c, 1) == 1 ? 5 : 1;
}

int main(void) {
  int fds[2], status = -1;
  CHECK_EQUAL(pipe(fds), 0);
  const pid_t p = start_process(child, fds[0]);
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(waitpid(p, &status, WNOHANG), 0);
  CHECK_EQUAL(status, -1);
  CHECK_EQUAL(write(fds[1], "x", 1), 1);
  pid_t got = 0;
  while ((got = waitpid(p, &status, WNOHANG)) == 0) sleep_ms(1);
  CHECK_EQUAL(got, p);
  CHECK_EQUAL(WEXITSTATUS(status), 5);
  return succeed();
}
