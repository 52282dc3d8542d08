// SPDX-License-Identifier: Apache-2.0
// EPOLLONESHOT reports once, and then nothing until it is armed again.
#define _GNU_SOURCE
#include <sys/epoll.h>

#include "../small.h"

int main(void) {
  int fds[2];
  struct epoll_event e = {EPOLLIN | EPOLLONESHOT, {.u32 = 1}}, got;
  const int ep = epoll_create1(0);
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e), 0);
  CHECK_EQUAL(write(fds[1], "a", 1), 1);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, -1), 1);
  CHECK_EQUAL(write(fds[1], "b", 1), 1);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, 10), 0);
  e.data.u32 = 2;
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e), 0);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, -1), 1);
  CHECK_EQUAL(got.data.u32, 2);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, 0), 0);
  return succeed();
}
