// SPDX-License-Identifier: Apache-2.0
// For the programs that connect to themselves by TCP: a listener at 127.0.0.1, and connections to
// it.
#ifndef TESTS_INTERPOSE_POSIX_TCP_LOOPBACK_H
#define TESTS_INTERPOSE_POSIX_TCP_LOOPBACK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "../small.h"

static inline struct sockaddr_in loopback_at(int port) {
  struct sockaddr_in a;
  memset(&a, 0, sizeof a);
  a.sin_family = AF_INET;
  a.sin_port = htons((uint16_t)port);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

// A listener at a port that the system chooses; stores the port.
static inline int listen_at_loopback(int backlog, int* port) {
  struct sockaddr_in a = loopback_at(0);
  socklen_t n = sizeof a;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(fd >= 0);
  CHECK_EQUAL(bind(fd, (struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(listen(fd, backlog), 0);
  CHECK_EQUAL(getsockname(fd, (struct sockaddr*)&a, &n), 0);
  *port = ntohs(a.sin_port);
  return fd;
}

static inline int try_connect(int fd, int port) {
  const struct sockaddr_in a = loopback_at(port);
  return connect(fd, (const struct sockaddr*)&a, sizeof a);
}

static inline int connect_to(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(fd >= 0);
  CHECK_EQUAL(try_connect(fd, port), 0);
  return fd;
}

// ends[0] connected, ends[1] accepted it.
static inline void connected_pair(int ends[2]) {
  int port = 0;
  const int listener = listen_at_loopback(1, &port);
  ends[0] = connect_to(port);
  ends[1] = accept(listener, NULL, NULL);
  CHECK(ends[1] >= 0);
  CHECK_EQUAL(close(listener), 0);
}

// The bits of `events` that poll reports now.
static inline short level_of(int fd, short events) {
  struct pollfd p = {fd, events, 0};
  CHECK(poll(&p, 1, 0) >= 0);
  return p.revents;
}

// Waits until poll reports at least `events`.
static inline void await_level(int fd, short events) {
  struct pollfd p = {fd, events, 0};
  while ((p.revents & events) != events) CHECK(poll(&p, 1, 5000) == 1);
}

#endif
