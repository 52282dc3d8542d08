// SPDX-License-Identifier: Apache-2.0
// Without EPOLLET an event is reported as long as there is something to read.
#define _GNU_SOURCE
#include <sys/epoll.h>

#include "../small.h"

int main(void) {
  int fds[2];
  char b[8];
  struct epoll_event e = {EPOLLIN, {.fd = 3}}, got;
  const int ep = epoll_create1(EPOLL_CLOEXEC);
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(write(fds[1], "ab", 2), 2);
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e), 0);
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(epoll_wait(ep, &got, 1, -1), 1);
  CHECK_EQUAL(read(fds[0], b, 1), 1);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, -1), 1);
  CHECK_EQUAL(read(fds[0], b, 1), 1);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, 0), 0);
  close(fds[1]);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, -1), 1);
  CHECK_EQUAL(got.events, EPOLLHUP);
  return succeed();
}
