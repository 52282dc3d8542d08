// SPDX-License-Identifier: Apache-2.0
// Each half of a stream is shut down separately: the peer reads the rest and the end, and can still
// answer.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int fds[2];
  char b[8];
  handle(SIGPIPE, SIG_IGN, 0);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  CHECK_EQUAL(write(fds[0], "last", 4), 4);
  CHECK_EQUAL(shutdown(fds[0], SHUT_WR), 0);
  CHECK_EQUAL(write(fds[0], "x", 1), -1);
  CHECK_EQUAL(errno, EPIPE);
  CHECK_EQUAL(read(fds[1], b, sizeof b), 4);
  CHECK_EQUAL(read(fds[1], b, sizeof b), 0);
  CHECK_EQUAL(write(fds[1], "answer", 6), 6);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 6);
  CHECK_EQUAL(shutdown(fds[0], SHUT_RD), 0);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 0);
  CHECK_EQUAL(write(fds[1], "x", 1), -1);
  CHECK_EQUAL(errno, EPIPE);
  CHECK_EQUAL(shutdown(fds[0], 9), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
