// SPDX-License-Identifier: Apache-2.0
// POLLRDHUP and EPOLLRDHUP report that the other end of a stream socket writes no more; POLLHUP
// that both directions have ended.
#define _GNU_SOURCE
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "../small.h"

static int bits(int fd, short events) {
  struct pollfd p = {fd, events, 0};
  CHECK_EQUAL(poll(&p, 1, 0), p.revents != 0);
  return p.revents;
}

int main(void) {
  int s[2];
  const short all = POLLIN | POLLOUT | POLLRDHUP | POLLPRI;
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  CHECK_EQUAL(bits(s[0], all), POLLOUT);
  const int e = epoll_create1(0);
  struct epoll_event v = {EPOLLRDHUP, {.u64 = 7}};
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_ADD, s[0], &v), 0);
  CHECK_EQUAL(epoll_wait(e, &v, 1, 0), 0);
  CHECK_EQUAL(shutdown(s[1], SHUT_WR), 0);
  CHECK_EQUAL(bits(s[0], all), POLLIN | POLLOUT | POLLRDHUP);
  CHECK_EQUAL(bits(s[0], POLLIN), POLLIN);
  CHECK_EQUAL(bits(s[0], POLLRDHUP), POLLRDHUP);
  CHECK_EQUAL(bits(s[1], all), POLLOUT);
  CHECK_EQUAL(epoll_wait(e, &v, 1, 0), 1);
  CHECK_EQUAL(v.events, EPOLLRDHUP);
  CHECK_EQUAL(shutdown(s[0], SHUT_WR), 0);
  CHECK_EQUAL(bits(s[0], all), POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
  CHECK_EQUAL(bits(s[1], 0), POLLHUP);
  CHECK_EQUAL(epoll_wait(e, &v, 1, 0), 1);
  CHECK_EQUAL(v.events, EPOLLRDHUP | EPOLLHUP);
  return succeed();
}
