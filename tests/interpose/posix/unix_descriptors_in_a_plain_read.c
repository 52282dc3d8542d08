// SPDX-License-Identifier: Apache-2.0
// A plain read of a message that carries a descriptor closes the descriptor: the pipe ends, and the
// next message's descriptor arrives separately.
#define _GNU_SOURCE
#include <poll.h>

#include "unix_rights.h"

int main(void) {
  int s[2], a[2], b[2];
  char c[4];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  CHECK_EQUAL(pipe(a), 0);
  CHECK_EQUAL(pipe(b), 0);
  send_one(s[0], a[1]);
  CHECK_EQUAL(read(s[1], c, sizeof c), 1);
  CHECK_EQUAL(close(a[1]), 0);
  struct pollfd p = {a[0], POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 1000), 1);
  CHECK_EQUAL(p.revents, POLLHUP);
  send_one(s[0], b[1]);
  const int fd = receive_one(s[1], 0);
  CHECK_EQUAL(write(fd, "zz", 2), 2);
  p.fd = b[0];
  CHECK_EQUAL(poll(&p, 1, 1000), 1);
  CHECK_EQUAL(read(b[0], c, sizeof c), 2);
  return succeed();
}
