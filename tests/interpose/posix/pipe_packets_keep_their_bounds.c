// SPDX-License-Identifier: Apache-2.0
// A pipe made with O_DIRECT keeps each small write separate; bytes that do not fit a read are lost.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../small.h"

int main(void) {
  int fds[2];
  char b[64];
  CHECK_EQUAL(pipe2(fds, O_DIRECT), 0);
  CHECK_EQUAL(fcntl(fds[1], F_GETFL) & O_DIRECT, O_DIRECT);
  CHECK_EQUAL(write(fds[1], "one", 3), 3);
  CHECK_EQUAL(write(fds[1], "three", 5), 5);
  CHECK_EQUAL(write(fds[1], "seven", 5), 5);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 3);
  CHECK_EQUAL(memcmp(b, "one", 3), 0);
  CHECK_EQUAL(read(fds[0], b, 2), 2);
  CHECK_EQUAL(memcmp(b, "th", 2), 0);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 5);
  CHECK_EQUAL(memcmp(b, "seven", 5), 0);
  CHECK_EQUAL(close(fds[1]), 0);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 0);
  return succeed();
}
