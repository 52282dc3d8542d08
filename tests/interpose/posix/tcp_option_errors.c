// SPDX-License-Identifier: Apache-2.0
// setsockopt and getsockopt: unknown options, values out of range, too little room, a descriptor
// that is not a socket.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  int fds[2], v = 1;
  socklen_t n = sizeof v;
  CHECK_EQUAL(pipe(fds), 0);
  FAILS(setsockopt(s, SOL_SOCKET, 9999, &v, sizeof v), ENOPROTOOPT);
  FAILS(getsockopt(s, SOL_SOCKET, 9999, &v, &n), ENOPROTOOPT);
  FAILS(setsockopt(s, IPPROTO_TCP, 9999, &v, sizeof v), ENOPROTOOPT);
  FAILS(setsockopt(s, SOL_SOCKET, SO_TYPE, &v, sizeof v), ENOPROTOOPT);
  FAILS(setsockopt(s, SOL_SOCKET, SO_ERROR, &v, sizeof v), ENOPROTOOPT);
  struct timeval t = {0, 1000000};
  FAILS(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t), EDOM);
  FAILS(setsockopt(fds[0], SOL_SOCKET, SO_KEEPALIVE, &v, sizeof v), ENOTSOCK);
  FAILS(getsockopt(fds[0], SOL_SOCKET, SO_TYPE, &v, &n), ENOTSOCK);
  FAILS(setsockopt(-1, SOL_SOCKET, SO_KEEPALIVE, &v, sizeof v), EBADF);
  n = 1;
  v = 0;
  CHECK_EQUAL(getsockopt(s, SOL_SOCKET, SO_TYPE, &v, &n), 0);
  CHECK(n == 1 && v == SOCK_STREAM);
  FAILS(listen(fds[0], 1), ENOTSOCK);
  FAILS(recv(s, &v, 1, 0), ENOTCONN);
  FAILS(shutdown(s, SHUT_RD), ENOTCONN);
  FAILS(accept(s, NULL, NULL), EINVAL);
  FAILS(socket(999, SOCK_STREAM, 0), EAFNOSUPPORT);
  FAILS(send(s, "x", 1, MSG_NOSIGNAL), EPIPE);
  return succeed();
}
