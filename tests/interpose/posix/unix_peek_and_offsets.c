// SPDX-License-Identifier: Apache-2.0
// MSG_PEEK, MSG_TRUNC, MSG_DONTWAIT and SO_PEEK_OFF of unix sockets.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int s[2], v = 0;
  socklen_t n = sizeof v;
  char b[16];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
  CHECK_EQUAL(send(s[0], "abcdef", 6, 0), 6);
  CHECK_EQUAL(recv(s[1], b, 2, MSG_PEEK | MSG_TRUNC), 6);
  CHECK_EQUAL(recv(s[1], b, 2, MSG_PEEK), 2);
  CHECK_EQUAL(recv(s[1], b, 2, MSG_TRUNC), 6);
  CHECK_EQUAL(recv(s[1], b, 2, MSG_DONTWAIT), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  CHECK_EQUAL(getsockopt(s[1], SOL_SOCKET, SO_PEEK_OFF, &v, &n), 0);
  CHECK_EQUAL(v, -1);
  v = 2;
  CHECK_EQUAL(setsockopt(s[1], SOL_SOCKET, SO_PEEK_OFF, &v, n), 0);
  CHECK_EQUAL(send(s[0], "abcdef", 6, 0), 6);
  CHECK_EQUAL(recv(s[1], b, 3, MSG_PEEK), 3);
  CHECK_EQUAL(memcmp(b, "cde", 3), 0);
  CHECK_EQUAL(recv(s[1], b, sizeof b, MSG_PEEK), 1);
  CHECK_EQUAL(b[0], 'f');
  CHECK_EQUAL(recv(s[1], b, sizeof b, 0), 6);
  return succeed();
}
