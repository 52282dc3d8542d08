// SPDX-License-Identifier: Apache-2.0
// A registration of epoll is keyed by open file and number: a duplicate can be added as well, and
// closing the number keeps the registration while a duplicate is open.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/epoll.h>

#include "../small.h"

int main(void) {
  int fds[2];
  struct epoll_event v = {EPOLLIN, {.u32 = 1}}, got[4];
  CHECK_EQUAL(pipe(fds), 0);
  const int e = epoll_create1(EPOLL_CLOEXEC), twin = dup(fds[0]);
  CHECK_EQUAL(fcntl(e, F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_ADD, fds[0], &v), 0);
  v.data.u32 = 2;
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_ADD, twin, &v), 0);
  CHECK_EQUAL(write(fds[1], "x", 1), 1);
  CHECK_EQUAL(epoll_wait(e, got, 4, 0), 2);
  CHECK_EQUAL(got[0].data.u32 + got[1].data.u32, 3);
  const int number = fds[0];
  CHECK_EQUAL(close(fds[0]), 0);
  CHECK_EQUAL(epoll_wait(e, got, 4, 0), 2);
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_DEL, number, NULL), -1);
  CHECK_EQUAL(errno, EBADF);
  CHECK_EQUAL(dup2(twin, number), number);
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_DEL, number, NULL), 0);
  CHECK_EQUAL(epoll_wait(e, got, 4, 0), 1);
  CHECK_EQUAL(got[0].data.u32, 2);
  CHECK_EQUAL(close(number), 0);
  CHECK_EQUAL(close(twin), 0);
  CHECK_EQUAL(epoll_wait(e, got, 4, 0), 0);
  return succeed();
}
