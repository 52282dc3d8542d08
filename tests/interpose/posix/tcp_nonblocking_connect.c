// SPDX-License-Identifier: Apache-2.0
// A nonblocking connect is in progress, then poll reports the outcome: connected, which the next
// connect returns once, or refused, which SO_ERROR returns once.
#include "tcp_loopback.h"

static int error_of(int fd) {
  int error = -1;
  socklen_t n = sizeof error;
  CHECK_EQUAL(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n), 0);
  return error;
}

int main(void) {
  int port = 0;
  const int listener = listen_at_loopback(4, &port);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  CHECK_EQUAL(try_connect(fd, port), -1);
  CHECK_EQUAL(errno, EINPROGRESS);
  await_level(fd, POLLOUT);
  CHECK_EQUAL(level_of(fd, POLLIN | POLLOUT | POLLRDHUP), POLLOUT);
  CHECK_EQUAL(error_of(fd), 0);
  CHECK_EQUAL(try_connect(fd, port), 0);
  CHECK_EQUAL(try_connect(fd, port), -1);
  CHECK_EQUAL(errno, EISCONN);
  char byte;
  CHECK_EQUAL(recv(fd, &byte, 1, 0), -1);
  CHECK_EQUAL(errno, EAGAIN);
  close(fd);
  CHECK_EQUAL(close(accept(listener, NULL, NULL)), 0);
  close(listener);

  fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  CHECK_EQUAL(try_connect(fd, port), -1);
  CHECK_EQUAL(errno, EINPROGRESS);
  await_level(fd, POLLOUT);
  CHECK_EQUAL(level_of(fd, POLLIN | POLLOUT), POLLIN | POLLOUT | POLLERR | POLLHUP);
  CHECK_EQUAL(error_of(fd), ECONNREFUSED);
  CHECK_EQUAL(error_of(fd), 0);
  CHECK_EQUAL(level_of(fd, POLLIN | POLLOUT) & POLLERR, 0);
  close(fd);
  fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  CHECK_EQUAL(try_connect(fd, port), -1);
  CHECK_EQUAL(errno, EINPROGRESS);
  await_level(fd, POLLOUT);
  CHECK_EQUAL(try_connect(fd, port), -1);
  CHECK_EQUAL(errno, ECONNREFUSED);
  close(fd);
  fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_EQUAL(try_connect(fd, port), -1);
  CHECK_EQUAL(errno, ECONNREFUSED);
  return succeed();
}
