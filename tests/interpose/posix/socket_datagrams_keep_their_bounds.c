// SPDX-License-Identifier: Apache-2.0
// A pair of datagram sockets keeps messages separate; a message that does not fit is truncated and
// flagged.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int fds[2];
  char b[8];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), 0);
  CHECK_EQUAL(send(fds[0], "abcde", 5, 0), 5);
  CHECK_EQUAL(send(fds[0], "", 0, 0), 0);
  CHECK_EQUAL(send(fds[0], "fg", 2, 0), 2);
  struct iovec v = {b, 3};
  struct msghdr m = {0};
  m.msg_iov = &v;
  m.msg_iovlen = 1;
  CHECK_EQUAL(recvmsg(fds[1], &m, 0), 3);
  CHECK_EQUAL(m.msg_flags & MSG_TRUNC, MSG_TRUNC);
  CHECK_EQUAL(memcmp(b, "abc", 3), 0);
  CHECK_EQUAL(recv(fds[1], b, sizeof b, 0), 0);
  CHECK_EQUAL(recv(fds[1], b, sizeof b, 0), 2);
  CHECK_EQUAL(memcmp(b, "fg", 2), 0);
  return succeed();
}
