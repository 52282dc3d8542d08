// SPDX-License-Identifier: Apache-2.0
// A message with a descriptor that is only looked at gives a duplicate of it, and the descriptor
// itself when it is taken.
#define _GNU_SOURCE
#include <poll.h>
#include <sys/socket.h>

#include "../small.h"

static char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));

static void send_one(int s, int fd) {
  struct iovec v = {(void*)"x", 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control};
  m.msg_controllen = sizeof control;
  struct cmsghdr* const c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(c), &fd, sizeof fd);
  CHECK_EQUAL(sendmsg(s, &m, 0), 1);
}

static int receive_one(int s, int flags) {
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

int main(void) {
  int s[2], a[2];
  char c[4];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  CHECK_EQUAL(pipe(a), 0);
  send_one(s[0], a[1]);
  CHECK_EQUAL(close(a[1]), 0);
  const int peeked = receive_one(s[1], MSG_PEEK);
  const int taken = receive_one(s[1], 0);
  CHECK(peeked != taken);
  CHECK_EQUAL(write(taken, "t", 1), 1);
  CHECK_EQUAL(write(peeked, "p", 1), 1);
  struct pollfd p = {a[0], POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 1000), 1);
  CHECK_EQUAL(read(a[0], c, sizeof c), 2);
  CHECK_EQUAL(memcmp(c, "tp", 2), 0);
  CHECK_EQUAL(close(taken), 0);
  CHECK_EQUAL(poll(&p, 1, 0), 0);
  CHECK_EQUAL(close(peeked), 0);
  CHECK_EQUAL(poll(&p, 1, 1000), 1);
  CHECK_EQUAL(p.revents, POLLHUP);
  return succeed();
}
