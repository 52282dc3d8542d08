// SPDX-License-Identifier: Apache-2.0
// Peeking at a message with a descriptor returns a duplicate of it; receiving the message returns
// the descriptor itself.
#define _GNU_SOURCE
#include <poll.h>

#include "unix_rights.h"

int main(void) {
  int s[2], a[2];
  char c[4];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  CHECK_EQUAL(pipe(a), 0);
  send_one(s[0], a[1]);
  CHECK_EQUAL(close(a[1]), 0);
  const int peeked = receive_one(s[1], MSG_PEEK);
  const int taken = receive_one(s[1], 0);
  CHECK(peeked != taken);
  CHECK_EQUAL(write(taken, "t", 1), 1);
  CHECK_EQUAL(write(peeked, "p", 1), 1);
  struct pollfd p = {a[0], POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 1000), 1);
  CHECK_EQUAL(read(a[0], c, sizeof c), 2);
  CHECK_EQUAL(memcmp(c, "tp", 2), 0);
  CHECK_EQUAL(close(taken), 0);
  CHECK_EQUAL(poll(&p, 1, 0), 0);
  CHECK_EQUAL(close(peeked), 0);
  CHECK_EQUAL(poll(&p, 1, 1000), 1);
  CHECK_EQUAL(p.revents, POLLHUP);
  return succeed();
}
