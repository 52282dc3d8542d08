// SPDX-License-Identifier: Apache-2.0
// socketpair of each kind: streams merge writes, datagrams and packets keep their boundaries and
// report truncation; invalid kinds and families.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  const int kinds[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
  int s[2];
  char b[16];
  for (int i = 0; i < 3; ++i) {
    CHECK_EQUAL(socketpair(AF_UNIX, kinds[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s), 0);
    CHECK_EQUAL(fcntl(s[1], F_GETFD), FD_CLOEXEC);
    CHECK_EQUAL(fcntl(s[1], F_GETFL), O_RDWR | O_NONBLOCK);
    int v = -1;
    socklen_t n = sizeof v;
    CHECK_EQUAL(getsockopt(s[0], SOL_SOCKET, SO_TYPE, &v, &n), 0);
    CHECK_EQUAL(v, kinds[i]);
    CHECK_EQUAL(getsockopt(s[0], SOL_SOCKET, SO_DOMAIN, &v, &n), 0);
    CHECK_EQUAL(v, AF_UNIX);
    FAILS(recv(s[1], b, sizeof b, 0), EAGAIN);
    CHECK_EQUAL(send(s[0], "abc", 3, 0), 3);
    CHECK_EQUAL(send(s[0], "de", 2, 0), 2);
    struct iovec part = {b, 2};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    CHECK_EQUAL(recvmsg(s[1], &m, 0), 2);
    CHECK_EQUAL(m.msg_flags & MSG_TRUNC, i == 0 ? 0 : MSG_TRUNC);
    CHECK_EQUAL(recv(s[1], b, sizeof b, 0), i == 0 ? 3 : 2);
    CHECK_EQUAL(memcmp(b, i == 0 ? "cde" : "de", 2), 0);
    struct sockaddr_un a;
    n = sizeof a;
    CHECK_EQUAL(getsockname(s[0], (struct sockaddr*)&a, &n), 0);
    CHECK(n == sizeof a.sun_family && a.sun_family == AF_UNIX);
    CHECK_EQUAL(getpeername(s[0], (struct sockaddr*)&a, &n), 0);
    CHECK_EQUAL(n, sizeof a.sun_family);
    CHECK_EQUAL(close(s[0]), 0);
    CHECK_EQUAL(close(s[1]), 0);
  }
  FAILS(socketpair(AF_INET, SOCK_STREAM, 0, s), EOPNOTSUPP);
  FAILS(socketpair(AF_UNIX, 77, 0, s), EINVAL);
  FAILS(socketpair(AF_UNIX, SOCK_STREAM, 9, s), EPROTONOSUPPORT);
  return succeed();
}
