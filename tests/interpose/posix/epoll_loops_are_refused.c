// SPDX-License-Identifier: Apache-2.0
// An epoll may watch another one, but not in a circle: ELOOP.
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

static int add(int e, int fd) {
  struct epoll_event v = {EPOLLIN, {.fd = fd}};
  return epoll_ctl(e, EPOLL_CTL_ADD, fd, &v);
}

int main(void) {
  struct epoll_event v;
  int e[8];
  for (int i = 0; i < 8; ++i) e[i] = epoll_create1(0);
  CHECK_EQUAL(add(e[0], e[1]), 0);
  FAILS(add(e[1], e[0]), ELOOP);
  CHECK_EQUAL(add(e[1], e[2]), 0);
  FAILS(add(e[2], e[0]), ELOOP);
  const int n = eventfd(0, 0);
  CHECK_EQUAL(add(e[2], n), 0);
  CHECK_EQUAL(epoll_wait(e[0], &v, 1, 0), 0);
  CHECK_EQUAL(eventfd_write(n, 1), 0);
  CHECK_EQUAL(epoll_wait(e[0], &v, 1, 0), 1);
  CHECK_EQUAL(v.data.fd, e[1]);
  CHECK_EQUAL(epoll_wait(e[1], &v, 1, 0), 1);
  CHECK_EQUAL(v.data.fd, e[2]);
  return succeed();
}
