// SPDX-License-Identifier: Apache-2.0
// Opening /proc/self/fd of a pipe gives another descriptor of the same pipe, which counts as one of
// its writers.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../small.h"

int main(void) {
  int fds[2];
  char name[64], b[8];
  CHECK_EQUAL(pipe2(fds, O_NONBLOCK), 0);
  snprintf(name, sizeof name, "/proc/self/fd/%d", fds[1]);
  const int again = open(name, O_WRONLY);
  CHECK(again >= 0);
  CHECK_EQUAL(write(again, "ab", 2), 2);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 2);
  CHECK_EQUAL(close(fds[1]), 0);
  CHECK_EQUAL(read(fds[0], b, sizeof b), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(write(again, "cde", 3), 3);
  CHECK_EQUAL(close(again), 0);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 3);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 0);
  return succeed();
}
