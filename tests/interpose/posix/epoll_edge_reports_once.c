// SPDX-License-Identifier: Apache-2.0
// EPOLLET reports new input once, and again when more arrives.
#define _GNU_SOURCE
#include <sys/epoll.h>

#include "../small.h"

int main(void) {
  int fds[2];
  char b[8];
  struct epoll_event e = {EPOLLIN | EPOLLET, {.u64 = 7}}, got;
  const int ep = epoll_create1(0);
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e), 0);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, 0), 0);
  CHECK_EQUAL(write(fds[1], "ab", 2), 2);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, -1), 1);
  CHECK_EQUAL(got.data.u64, 7);
  CHECK_EQUAL(got.events, EPOLLIN);
  CHECK_EQUAL(read(fds[0], b, 1), 1);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, 10), 0);
  CHECK_EQUAL(write(fds[1], "c", 1), 1);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, -1), 1);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 2);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, 0), 0);
  return succeed();
}
