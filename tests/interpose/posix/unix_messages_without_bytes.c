// SPDX-License-Identifier: Apache-2.0
// An empty datagram is an ordinary message: poll reports it, a receive takes it, and a waiting
// receive wakes.
#define _GNU_SOURCE
#include <poll.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int s[2];
  char b[4];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
  const struct timeval limit = {1, 0};
  CHECK_EQUAL(setsockopt(s[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  CHECK_EQUAL(send(s[0], "", 0, 0), 0);
  CHECK_EQUAL(send(s[0], "ab", 2, 0), 2);
  CHECK_EQUAL(send(s[0], "", 0, 0), 0);
  CHECK_EQUAL(recv(s[1], b, sizeof b, 0), 0);
  CHECK_EQUAL(recv(s[1], b, sizeof b, 0), 2);
  struct pollfd p = {s[1], POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 0), 1);
  CHECK_EQUAL(p.revents, POLLIN);
  CHECK_EQUAL(recv(s[1], b, sizeof b, 0), 0);
  CHECK(recv(s[1], b, sizeof b, MSG_DONTWAIT) == -1 && errno == EAGAIN);
  return succeed();
}
