// SPDX-License-Identifier: Apache-2.0
// EPOLLEXCLUSIVE is permitted when a descriptor is added, with few other bits, and not for an
// epoll; such a registration cannot be modified.
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  const int e = epoll_create1(0), f = epoll_create1(0), n = eventfd(0, 0), m = eventfd(0, 0);
  struct epoll_event v = {EPOLLIN | EPOLLEXCLUSIVE | EPOLLET, {.fd = n}};
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_ADD, n, &v), 0);
  FAILS(epoll_ctl(e, EPOLL_CTL_MOD, n, &v), EINVAL);
  v.events = EPOLLIN;
  FAILS(epoll_ctl(e, EPOLL_CTL_MOD, n, &v), EINVAL);
  v.events = EPOLLIN | EPOLLEXCLUSIVE;
  FAILS(epoll_ctl(e, EPOLL_CTL_ADD, f, &v), EINVAL);
  v.events = EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT;
  FAILS(epoll_ctl(e, EPOLL_CTL_ADD, m, &v), EINVAL);
  v.events = EPOLLIN;
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_ADD, m, &v), 0);
  v.events = EPOLLIN | EPOLLEXCLUSIVE;
  FAILS(epoll_ctl(e, EPOLL_CTL_MOD, m, &v), EINVAL);
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_DEL, n, NULL), 0);
  return succeed();
}
