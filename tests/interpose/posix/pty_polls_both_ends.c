// SPDX-License-Identifier: Apache-2.0
// poll and epoll, level and edge, report the events of both ends.
#include "../terminal.h"

#include <sys/epoll.h>

static int epoll_of(int fd, uint32_t events) {
  const int ep = epoll_create1(0);
  struct epoll_event e = {.events = events, .data.fd = fd};
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e), 0);
  return ep;
}

static uint32_t poll_events(int ep, int ms) {
  struct epoll_event e;
  return epoll_wait(ep, &e, 1, ms) == 1 ? e.events : 0;
}

static void* type_later(void* master) {
  sleep_ms(20);
  type(*(int*)master, "line\n");
  return NULL;
}

int main(void) {
  int master, line;
  char b[64];
  open_pair(&master, &line);
  CHECK_EQUAL(events_of(master), POLLOUT);
  CHECK_EQUAL(events_of(line), POLLOUT);
  const int level = epoll_of(line, EPOLLIN), edge = epoll_of(line, EPOLLIN | EPOLLET);
  CHECK_EQUAL(poll_events(level, 0), 0);
  type(master, "no end yet");
  await_events(master, POLLIN);  // its echo
  CHECK_EQUAL(events_of(line), POLLOUT);
  CHECK_EQUAL(poll_events(level, 0), 0);
  const pthread_t t = start(type_later, &master);
  await_events(line, POLLIN);
  join(t);
  CHECK_EQUAL(poll_events(level, 0), EPOLLIN);
  CHECK_EQUAL(poll_events(level, 0), EPOLLIN);
  CHECK_EQUAL(poll_events(edge, 0), EPOLLIN);
  CHECK_EQUAL(poll_events(edge, 0), 0);
  type(master, "second\n");
  CHECK_EQUAL(poll_events(edge, -1), EPOLLIN);
  CHECK_EQUAL(read(line, b, sizeof b), 15);
  CHECK_EQUAL(read(line, b, sizeof b), 7);
  CHECK_EQUAL(poll_events(level, 0), 0);
  fd_set set;
  FD_ZERO(&set);
  FD_SET(master, &set);
  CHECK_EQUAL(select(master + 1, &set, NULL, NULL, NULL), 1);
  expect(master, "no end yetline\r\nsecond\r\n");
  const int gone = epoll_of(master, EPOLLIN);
  close(line);
  CHECK_EQUAL(poll_events(gone, -1), EPOLLHUP);
  return succeed();
}
