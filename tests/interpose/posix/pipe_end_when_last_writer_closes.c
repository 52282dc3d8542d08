// SPDX-License-Identifier: Apache-2.0
// A pipe ends when its last writing descriptor is closed, including those of other processes and
// copies.
#define _GNU_SOURCE
#include "../child.h"

static int writer(int to) {
  sleep_ms(10);
  return write(to, "bc", 2) == 2 ? 0 : 1;
}

int main(void) {
  int fds[2];
  char b[8];
  CHECK_EQUAL(pipe(fds), 0);
  const int copy = dup(fds[1]);
  const pid_t p = start_process(writer, fds[1]);
  close(fds[1]);
  CHECK_EQUAL(write(copy, "a", 1), 1);
  close(copy);
  size_t have = 0;
  for (ssize_t n; (n = read(fds[0], b + have, sizeof b - have)) != 0;) {
    CHECK(n > 0);
    have += (size_t)n;
  }
  CHECK_EQUAL(have, 3);
  CHECK_EQUAL(memcmp(b, "abc", 3), 0);
  CHECK_EQUAL(status_of(p), 0);
  return succeed();
}
