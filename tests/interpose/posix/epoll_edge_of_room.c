// SPDX-License-Identifier: Apache-2.0
// EPOLLET notifies a writer when a reader has made room, even if there was some before: for an
// eventfd, and for a unix stream whose messages are gone.
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "../small.h"

static int events_of(int ep) {
  struct epoll_event e;
  const int n = epoll_wait(ep, &e, 1, 0);
  return n == 1 ? (int)e.events : n;
}

static int watch(int fd, uint32_t events) {
  struct epoll_event e = {events | EPOLLET, {.fd = fd}};
  const int ep = epoll_create1(0);
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e), 0);
  return ep;
}

int main(void) {
  uint64_t v = 1;
  const int e = eventfd(0, EFD_NONBLOCK), of_event = watch(e, EPOLLIN | EPOLLOUT);
  CHECK_EQUAL(events_of(of_event), EPOLLOUT);
  CHECK_EQUAL(events_of(of_event), 0);
  CHECK_EQUAL(write(e, &v, sizeof v), 8);
  CHECK_EQUAL(events_of(of_event), EPOLLIN | EPOLLOUT);
  CHECK_EQUAL(events_of(of_event), 0);
  CHECK_EQUAL(read(e, &v, sizeof v), 8);
  CHECK_EQUAL(events_of(of_event), EPOLLOUT);
  CHECK_EQUAL(events_of(of_event), 0);

  int s[2];
  char b[16];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  const int of_stream = watch(s[0], EPOLLOUT);
  CHECK_EQUAL(events_of(of_stream), EPOLLOUT);
  CHECK_EQUAL(write(s[0], "12345678", 8), 8);
  CHECK_EQUAL(events_of(of_stream), 0);
  CHECK_EQUAL(read(s[1], b, sizeof b), 8);
  CHECK_EQUAL(events_of(of_stream), EPOLLOUT);
  CHECK_EQUAL(events_of(of_stream), 0);
  return succeed();
}
