// SPDX-License-Identifier: Apache-2.0
// A pair of sequenced-packet sockets keeps message boundaries, and ends like a stream.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int fds[2];
  char b[8];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
  CHECK_EQUAL(send(fds[0], "abc", 3, 0), 3);
  CHECK_EQUAL(send(fds[0], "de", 2, 0), 2);
  CHECK_EQUAL(close(fds[0]), 0);
  CHECK_EQUAL(recv(fds[1], b, sizeof b, 0), 3);
  CHECK_EQUAL(recv(fds[1], b, sizeof b, 0), 2);
  CHECK_EQUAL(recv(fds[1], b, sizeof b, 0), 0);
  return succeed();
}
