// SPDX-License-Identifier: Apache-2.0
// A descriptor leaves the epoll when its last copy is closed.
#define _GNU_SOURCE
#include <sys/epoll.h>

#include "../small.h"

int main(void) {
  int fds[2];
  struct epoll_event e = {EPOLLIN, {.u32 = 9}}, got;
  const int ep = epoll_create1(0);
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e), 0);
  CHECK_EQUAL(write(fds[1], "x", 1), 1);
  const int copy = dup(fds[0]);
  close(fds[0]);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, -1), 1);
  CHECK_EQUAL(got.data.u32, 9);
  close(copy);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, 0), 0);
  return succeed();
}
