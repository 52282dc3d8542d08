// SPDX-License-Identifier: Apache-2.0
// connect: bad descriptors, families and states; a socket bound before keeps its port.
#include "tcp_loopback.h"

int main(void) {
  int port = 0;
  const int listener = listen_at_loopback(4, &port);
  CHECK_EQUAL(try_connect(-1, port), -1);
  CHECK_EQUAL(errno, EBADF);
  CHECK_EQUAL(try_connect(0 + fileno(tmpfile()), port), -1);
  CHECK_EQUAL(errno, ENOTSOCK);
  int fd = socket(AF_INET6, SOCK_STREAM, 0);
  CHECK_EQUAL(try_connect(fd, port), -1);
  CHECK(errno == EINVAL || errno == EAFNOSUPPORT);
  close(fd);
  fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in a = loopback_at(port);
  a.sin_family = AF_UNIX;
  CHECK_EQUAL(connect(fd, (struct sockaddr*)&a, sizeof a), -1);
  CHECK_EQUAL(errno, EAFNOSUPPORT);
  a = loopback_at(0);
  CHECK_EQUAL(bind(fd, (struct sockaddr*)&a, sizeof a), 0);
  socklen_t n = sizeof a;
  CHECK_EQUAL(getsockname(fd, (struct sockaddr*)&a, &n), 0);
  const in_port_t mine = a.sin_port;
  char byte;
  CHECK_EQUAL(recv(fd, &byte, 1, 0), -1);
  CHECK_EQUAL(errno, ENOTCONN);
  CHECK_EQUAL(try_connect(fd, port), 0);
  CHECK_EQUAL(try_connect(fd, port), -1);
  CHECK_EQUAL(errno, EISCONN);
  n = sizeof a;
  const int served = accept(listener, (struct sockaddr*)&a, &n);
  CHECK(served >= 0);
  CHECK_EQUAL(a.sin_port, mine);
  CHECK_EQUAL(listen(fd, 1), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
