// SPDX-License-Identifier: Apache-2.0
// An epoll is readable when one of its descriptors is, for poll and for another epoll.
#define _GNU_SOURCE
#include <poll.h>
#include <sys/epoll.h>

#include "../small.h"

int main(void) {
  int fds[2];
  char c;
  struct epoll_event e = {EPOLLIN, {.u32 = 1}}, got;
  const int inner = epoll_create1(0), outer = epoll_create1(0);
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(epoll_ctl(inner, EPOLL_CTL_ADD, fds[0], &e), 0);
  e.data.u32 = 2;
  CHECK_EQUAL(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &e), 0);
  struct pollfd p = {outer, POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 0), 0);
  CHECK_EQUAL(epoll_wait(outer, &got, 1, 0), 0);
  CHECK_EQUAL(write(fds[1], "x", 1), 1);
  CHECK_EQUAL(poll(&p, 1, -1), 1);
  CHECK_EQUAL(epoll_wait(outer, &got, 1, -1), 1);
  CHECK_EQUAL(got.data.u32, 2);
  CHECK_EQUAL(epoll_wait(inner, &got, 1, -1), 1);
  CHECK_EQUAL(got.data.u32, 1);
  CHECK_EQUAL(read(fds[0], &c, 1), 1);
  CHECK_EQUAL(epoll_wait(outer, &got, 1, 0), 0);
  return succeed();
}
