// SPDX-License-Identifier: Apache-2.0
// UDP: a datagram that does not fit is truncated, with MSG_TRUNC; MSG_PEEK leaves it; FIONREAD and
// SIOCINQ return the first one's length; a datagram that is too long fails with EMSGSIZE; a receive
// times out.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t n = sizeof a;
  const int s = socket(AF_INET, SOCK_DGRAM, 0), c = socket(AF_INET, SOCK_DGRAM, 0);
  static char big[70000];
  char b[8];
  int count = -1;
  CHECK_EQUAL(bind(s, (struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(getsockname(s, (struct sockaddr*)&a, &n), 0);
  CHECK_EQUAL(connect(c, (struct sockaddr*)&a, n), 0);
  CHECK_EQUAL(ioctl(s, FIONREAD, &count), 0);
  CHECK_EQUAL(count, 0);
  CHECK_EQUAL(send(c, "abcdef", 6, 0), 6);
  CHECK_EQUAL(send(c, "gh", 2, 0), 2);
  CHECK_EQUAL(ioctl(s, FIONREAD, &count), 0);
  CHECK_EQUAL(count, 6);
  CHECK_EQUAL(recv(s, b, 3, MSG_PEEK), 3);
  CHECK_EQUAL(recv(s, b, 3, MSG_PEEK | MSG_TRUNC), 6);
  struct iovec v[2] = {{b, 1}, {b + 1, 1}};
  struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
  CHECK_EQUAL(recvmsg(s, &m, 0), 2);
  CHECK_EQUAL(m.msg_flags & MSG_TRUNC, MSG_TRUNC);
  CHECK_EQUAL(memcmp(b, "ab", 2), 0);
  CHECK_EQUAL(recvmsg(s, &m, 0), 2);
  CHECK_EQUAL(m.msg_flags & MSG_TRUNC, 0);
  CHECK(send(c, big, 65508, 0) == -1 && errno == EMSGSIZE);
  CHECK(send(c, big, 70000, 0) == -1 && errno == EMSGSIZE);
  CHECK_EQUAL(send(c, big, 65507, 0), 65507);
  CHECK_EQUAL(recv(s, big, sizeof big, 0), 65507);
  const struct timeval limit = {0, 5000};
  CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  CHECK(recv(s, b, sizeof b, 0) == -1 && errno == EAGAIN);
  CHECK_EQUAL(shutdown(c, SHUT_RD), 0);
  CHECK_EQUAL(recv(c, b, sizeof b, 0), 0);
  CHECK(shutdown(s, SHUT_RD) == -1 && errno == ENOTCONN);
  return succeed();
}
