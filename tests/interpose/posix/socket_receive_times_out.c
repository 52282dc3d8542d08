// SPDX-License-Identifier: Apache-2.0
// SO_RCVTIMEO ends a blocked receive with EAGAIN, not before its time.
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/time.h>

#include "../small.h"

int main(void) {
  int fds[2];
  char c;
  const struct timeval limit = {0, 20000};
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  CHECK_EQUAL(setsockopt(fds[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  const long long begin = now_ns(CLOCK_MONOTONIC);
  CHECK_EQUAL(recv(fds[1], &c, 1, 0), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK(now_ns(CLOCK_MONOTONIC) - begin >= 19 * MS);
  CHECK_EQUAL(write(fds[0], "x", 1), 1);
  CHECK_EQUAL(recv(fds[1], &c, 1, 0), 1);
  return succeed();
}
