// SPDX-License-Identifier: Apache-2.0
// shutdown of a unix socket without a peer succeeds: it remains in effect when the socket is
// connected, and a listener then accepts no more clients.
#define _GNU_SOURCE
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../small.h"

static struct sockaddr_un name = {.sun_family = AF_UNIX};
static socklen_t size;

static void* accept_one(void* listener) {
  CHECK_EQUAL(accept(*(int*)listener, NULL, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  return NULL;
}

static short level_of(int fd) {
  struct pollfd p = {fd, POLLIN | POLLRDHUP, 0};
  CHECK(poll(&p, 1, 0) >= 0);
  return p.revents;
}

int main(void) {
  char b[4];
  size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                     snprintf(name.sun_path + 1, 64, "crane-test-shut-%d", getpid()));
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(bind(listener, (struct sockaddr*)&name, size), 0);
  CHECK_EQUAL(listen(listener, 4), 0);

  const int c = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(shutdown(c, 5), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(shutdown(c, SHUT_RD), 0);
  CHECK_EQUAL(connect(c, (struct sockaddr*)&name, size), 0);
  const int s = accept(listener, NULL, NULL);
  CHECK(s >= 0);
  CHECK_EQUAL(read(c, b, sizeof b), 0);
  CHECK_EQUAL(write(c, "x", 1), 1);
  CHECK_EQUAL(read(s, b, sizeof b), 1);

  const pthread_t waiting = start(accept_one, &listener);
  sleep_ms(10);
  CHECK_EQUAL(shutdown(listener, SHUT_RD), 0);
  join(waiting);
  accept_one(&listener);
  CHECK_EQUAL(level_of(listener), POLLIN | POLLRDHUP);
  CHECK_EQUAL(shutdown(listener, SHUT_WR), 0);
  CHECK_EQUAL(level_of(listener), POLLIN | POLLRDHUP | POLLHUP);
  const int late = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(connect(late, (struct sockaddr*)&name, size), -1);
  CHECK_EQUAL(errno, ECONNREFUSED);

  CHECK_EQUAL(close(s), 0);
  CHECK_EQUAL(shutdown(c, SHUT_RDWR), 0);
  return succeed();
}
