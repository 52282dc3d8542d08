// SPDX-License-Identifier: Apache-2.0
// connect with AF_UNSPEC dissolves a connection, whose peer gets a reset, and a listener; the
// socket can connect again. A connected socket gets EISCONN, also if accept made it.
#include "tcp_loopback.h"

static const struct sockaddr none = {.sa_family = AF_UNSPEC};

static int disconnect(int fd) { return connect(fd, &none, sizeof none); }

int main(void) {
  int s[2], port = 0;
  char b[8];
  connected_pair(s);
  const int listener = listen_at_loopback(1, &port);
  for (int i = 0; i < 2; ++i) {
    CHECK_EQUAL(try_connect(s[i], port), -1);
    CHECK_EQUAL(errno, EISCONN);
  }
  CHECK_EQUAL(disconnect(s[0]), 0);
  await_level(s[1], POLLERR | POLLHUP);
  CHECK_EQUAL(recv(s[1], b, sizeof b, 0), -1);
  CHECK_EQUAL(errno, ECONNRESET);
  CHECK_EQUAL(recv(s[0], b, sizeof b, 0), -1);
  CHECK_EQUAL(errno, ECONNRESET);
  CHECK_EQUAL(recv(s[0], b, sizeof b, 0), -1);
  CHECK_EQUAL(errno, ENOTCONN);
  CHECK_EQUAL(disconnect(s[0]), 0);

  CHECK_EQUAL(try_connect(s[0], port), 0);
  const int again = accept(listener, NULL, NULL);
  CHECK_EQUAL(write(s[0], "again", 5), 5);
  CHECK_EQUAL(read(again, b, sizeof b), 5);
  CHECK_EQUAL(disconnect(again), 0);
  CHECK_EQUAL(read(s[0], b, sizeof b), -1);
  CHECK_EQUAL(errno, ECONNRESET);

  CHECK_EQUAL(disconnect(listener), 0);
  CHECK_EQUAL(accept(listener, NULL, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  const int late = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_EQUAL(try_connect(late, port), -1);
  CHECK_EQUAL(errno, ECONNREFUSED);
  return succeed();
}
