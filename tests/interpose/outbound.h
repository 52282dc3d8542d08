// SPDX-License-Identifier: Apache-2.0
// What programs say of a socket that connects to others.
#ifndef TESTS_INTERPOSE_OUTBOUND_H
#define TESTS_INTERPOSE_OUTBOUND_H

#include <errno.h>
#include <poll.h>
#include <string.h>
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

static inline int ready(int fd, int ms) {
  struct pollfd p = {fd, POLLIN | POLLOUT | POLLRDHUP, 0};
  return poll(&p, 1, ms) < 0 ? -1 : p.revents;
}

#endif
