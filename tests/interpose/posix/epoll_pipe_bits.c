// SPDX-License-Identifier: Apache-2.0
// epoll reports hang-ups and errors of a pipe without a request for them, also with data still
// there; edge-triggered it reports them once.
#define _GNU_SOURCE
#include <sys/epoll.h>

#include "../small.h"

static uint32_t next(int e) {
  struct epoll_event v = {0, {.u64 = 0}};
  return epoll_wait(e, &v, 1, 0) == 1 ? v.events : 0;
}

int main(void) {
  int fds[2];
  char b[4];
  CHECK_EQUAL(pipe(fds), 0);
  const int e = epoll_create1(0);
  struct epoll_event v = {EPOLLET, {.u64 = 1}};
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_ADD, fds[0], &v), 0);
  CHECK_EQUAL(write(fds[1], "x", 1), 1);
  CHECK_EQUAL(next(e), 0);
  v.events = EPOLLIN;
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_MOD, fds[0], &v), 0);
  CHECK_EQUAL(next(e), EPOLLIN);
  CHECK_EQUAL(close(fds[1]), 0);
  CHECK_EQUAL(next(e), EPOLLIN | EPOLLHUP);
  v.events = EPOLLET;
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_MOD, fds[0], &v), 0);
  CHECK_EQUAL(next(e), EPOLLHUP);
  CHECK_EQUAL(next(e), 0);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 1);
  CHECK_EQUAL(close(fds[0]), 0);
  CHECK_EQUAL(pipe(fds), 0);
  v.events = 0;
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_ADD, fds[1], &v), 0);
  CHECK_EQUAL(next(e), 0);
  CHECK_EQUAL(close(fds[0]), 0);
  CHECK_EQUAL(next(e), EPOLLERR);
  return succeed();
}
