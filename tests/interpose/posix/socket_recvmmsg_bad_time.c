// SPDX-License-Identifier: Apache-2.0
// recvmmsg with an invalid time fails with EINVAL, even if a message has arrived.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int s[2];
  char b[4];
  struct iovec v = {b, sizeof b};
  struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
  struct timespec bad = {0, -1};
  CHECK_EQUAL(recvmmsg(s[1], &m, 1, MSG_DONTWAIT, &bad), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(send(s[0], "x", 1, 0), 1);
  bad = (struct timespec){0, 1000000000};
  CHECK_EQUAL(recvmmsg(s[1], &m, 1, 0, &bad), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(recv(s[1], b, sizeof b, 0), 1);
  return succeed();
}
