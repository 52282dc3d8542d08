// SPDX-License-Identifier: Apache-2.0
// MSG_PEEK returns the bytes that the next read will get.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int fds[2];
  char b[8];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  CHECK_EQUAL(write(fds[0], "peeked", 6), 6);
  for (int i = 0; i < 2; ++i) {
    memset(b, 0, sizeof b);
    CHECK_EQUAL(recv(fds[1], b, 4, MSG_PEEK), 4);
    CHECK_EQUAL(memcmp(b, "peek", 4), 0);
  }
  CHECK_EQUAL(recv(fds[1], b, sizeof b, 0), 6);
  CHECK_EQUAL(memcmp(b, "peeked", 6), 0);
  CHECK_EQUAL(recv(fds[1], b, sizeof b, MSG_PEEK | MSG_DONTWAIT), -1);
  CHECK_EQUAL(errno, EAGAIN);
  return succeed();
}
