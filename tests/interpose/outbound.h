// SPDX-License-Identifier: Apache-2.0
// Output of programs about a socket that connects to others.
#ifndef TESTS_INTERPOSE_OUTBOUND_H
#define TESTS_INTERPOSE_OUTBOUND_H

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static inline const char* outcome(long result) {
  return result < 0 ? strerrorname_np(errno) : "done";
}

static inline int error_of(int fd) {
  int error = -1;
  socklen_t n = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n);
  return error;
}

static inline void send_and_expect(int fd) {
  char buffer[64];
  printf("  sent %d\n", (int)send(fd, "question", 8, 0));
  const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
  printf("  received %.*s\n", (int)n, buffer);
  printf("  then %d\n", (int)recv(fd, buffer, sizeof buffer, 0));
}

static inline void expect_ready(const char* what, int set, int fd) {
  struct epoll_event e;
  char byte;
  printf("  %s: epoll %d", what, epoll_wait(set, &e, 1, -1));
  printf(" %x, recv %s\n", e.events, outcome(recv(fd, &byte, 1, 0)));
}

static inline int ready(int fd, int ms) {
  struct pollfd p = {fd, POLLIN | POLLOUT | POLLRDHUP, 0};
  return poll(&p, 1, ms) < 0 ? -1 : p.revents;
}

// A non-blocking connect(), which has no outcome yet.
static inline void wait_for_outcome(int set, int fd) {
  struct epoll_event e = {EPOLLIN | EPOLLOUT | EPOLLET, {.fd = fd}};
  char byte;
  epoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
  printf("  recv %s", outcome(recv(fd, &byte, 1, 0)));
  printf(", send %s", outcome(send(fd, "x", 1, 0)));
  printf(", poll %x\n", (unsigned)ready(fd, 0));
  printf("  epoll %d", epoll_wait(set, &e, 1, -1));
  printf(" %x, error %d\n", e.events, error_of(fd));
}

#endif
