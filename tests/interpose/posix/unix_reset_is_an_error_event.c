// SPDX-License-Identifier: Apache-2.0
// A unix stream whose peer closed with unread bytes, or was never accepted, has POLLERR until the
// error is returned, once, by a read or by SO_ERROR.
#define _GNU_SOURCE
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../small.h"

static short level_of(int fd) {
  struct pollfd p = {fd, POLLIN | POLLRDHUP, 0};
  CHECK(poll(&p, 1, 0) >= 0);
  return p.revents;
}

enum { kGone = POLLIN | POLLRDHUP | POLLHUP };

int main(void) {
  int s[2], error = 0;
  char b[8];
  socklen_t n = sizeof error;
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  CHECK_EQUAL(write(s[0], "unread", 6), 6);
  CHECK_EQUAL(close(s[1]), 0);
  CHECK_EQUAL(level_of(s[0]), kGone | POLLERR);
  CHECK_EQUAL(read(s[0], b, sizeof b), -1);
  CHECK_EQUAL(errno, ECONNRESET);
  CHECK_EQUAL(level_of(s[0]), kGone);
  CHECK_EQUAL(read(s[0], b, sizeof b), 0);

  struct sockaddr_un name = {.sun_family = AF_UNIX};
  const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                                     snprintf(name.sun_path + 1, 64, "crane-test-%d", getpid()));
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(bind(listener, (struct sockaddr*)&name, size), 0);
  CHECK_EQUAL(listen(listener, 4), 0);
  CHECK_EQUAL(connect(c, (struct sockaddr*)&name, size), 0);
  CHECK_EQUAL(close(listener), 0);
  CHECK_EQUAL(level_of(c), kGone | POLLERR);
  CHECK_EQUAL(getsockopt(c, SOL_SOCKET, SO_ERROR, &error, &n), 0);
  CHECK_EQUAL(error, ECONNRESET);
  CHECK_EQUAL(level_of(c), kGone);
  CHECK_EQUAL(read(c, b, sizeof b), 0);

  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  CHECK_EQUAL(close(s[1]), 0);
  CHECK_EQUAL(level_of(s[0]), kGone);
  return succeed();
}
