// SPDX-License-Identifier: Apache-2.0
// A repeating timerfd is one edge until it is read; one set to a time long past has expired at
// once.
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "../small.h"

static long expirations(int fd) {
  uint64_t n = 0;
  return read(fd, &n, sizeof n) == sizeof n ? (long)n : -errno;
}

int main(void) {
  const int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
  struct itimerspec past = {{0, 0}, {0, 1}};
  CHECK_EQUAL(timerfd_settime(fd, TFD_TIMER_ABSTIME, &past, NULL), 0);
  CHECK_EQUAL(expirations(fd), 1);
  CHECK_EQUAL(expirations(fd), -EAGAIN);
  CHECK_EQUAL(timerfd_gettime(fd, &past), 0);
  CHECK(past.it_value.tv_sec == 0 && past.it_value.tv_nsec == 0);

  struct itimerspec every = {{0, 20 * MS}, {0, 20 * MS}};
  struct epoll_event e = {EPOLLIN | EPOLLET, {.fd = fd}};
  const int ep = epoll_create1(0);
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e), 0);
  CHECK_EQUAL(timerfd_settime(fd, 0, &every, NULL), 0);
  CHECK_EQUAL(epoll_wait(ep, &e, 1, -1), 1);
  CHECK_EQUAL(epoll_wait(ep, &e, 1, 70), 0);
  CHECK(expirations(fd) >= 4);
  CHECK_EQUAL(epoll_wait(ep, &e, 1, -1), 1);
  return succeed();
}
