// SPDX-License-Identifier: Apache-2.0
// Functions for the programs that test urgent data of TCP.
#ifndef TESTS_INTERPOSE_POSIX_TCP_URGENT_H
#define TESTS_INTERPOSE_POSIX_TCP_URGENT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/ioctl.h>
#include "tcp_loopback.h"

static inline void send_text(int fd, const char* text, int flags) {
  CHECK_EQUAL(send(fd, text, strlen(text), flags), strlen(text));
}

static inline int unread(int fd) {
  int n = -1;
  CHECK_EQUAL(ioctl(fd, FIONREAD, &n), 0);
  return n;
}

// Checks the result of the next read.
static inline void expect_text_with(int fd, const char* text, int flags) {
  char got[64];
  const ssize_t n = recv(fd, got, sizeof got, flags);
  CHECK_EQUAL(n, strlen(text));
  CHECK(memcmp(got, text, (size_t)n) == 0);
}

static inline void expect_text(int fd, const char* text) {
  expect_text_with(fd, text, MSG_DONTWAIT);
}

static inline void expect_nothing(int fd) {
  char byte;
  CHECK_EQUAL(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
  CHECK_EQUAL(errno, EAGAIN);
}

static inline void no_urgent_byte(int fd) {
  char byte;
  CHECK_EQUAL(recv(fd, &byte, 1, MSG_OOB), -1);
  CHECK_EQUAL(errno, EINVAL);
}

static inline void set_inline(int fd, int on) {
  CHECK_EQUAL(setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on), 0);
}

// Waits until all sent bytes have arrived; the stream ends with these bytes.
static inline void await_unread(int fd, int bytes) {
  while (unread(fd) < bytes) CHECK(poll(NULL, 0, 1) == 0);
}

#endif
