// SPDX-License-Identifier: Apache-2.0
// Functions that pass one byte with one descriptor over a unix socket.
#pragma once
#include <sys/socket.h>

#include "../small.h"

static char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));

// Sends one byte with the descriptor `fd`; returns the result of sendmsg.
static inline ssize_t try_to_send(int s, int fd) {
  struct iovec v = {(void*)"x", 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control};
  m.msg_controllen = sizeof control;
  struct cmsghdr* const c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(c), &fd, sizeof fd);
  return sendmsg(s, &m, 0);
}

static inline void send_one(int s, int fd) { CHECK_EQUAL(try_to_send(s, fd), 1); }

static inline int receive_one(int s, int flags) {
  char x;
  int fd;
  struct iovec v = {&x, 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control};
  m.msg_controllen = sizeof control;
  CHECK_EQUAL(recvmsg(s, &m, flags), 1);
  const struct cmsghdr* const c = CMSG_FIRSTHDR(&m);
  CHECK(c != NULL);
  memcpy(&fd, CMSG_DATA(c), sizeof fd);
  return fd;
}
