// SPDX-License-Identifier: Apache-2.0
// SCM_RIGHTS: up to 253 descriptors in a message, more fails with EINVAL, closed ones EBADF; with
// too little room the rest is closed and MSG_CTRUNC is set; MSG_CMSG_CLOEXEC marks them.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>

#include "../small.h"

static char control[CMSG_SPACE(300 * sizeof(int))] __attribute__((aligned(8)));

static ssize_t send_some(int s, int fd, size_t count) {
  char x = 'x';
  struct iovec v = {&x, 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control};
  m.msg_controllen = CMSG_SPACE(count * sizeof(int));
  struct cmsghdr* const c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(count * sizeof(int));
  for (size_t i = 0; i < count; ++i) memcpy(CMSG_DATA(c) + i * sizeof fd, &fd, sizeof fd);
  return sendmsg(s, &m, 0);
}

static int receive(int s, size_t room, int flags, int* ctrunc, int* first) {
  char x;
  struct iovec v = {&x, 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control};
  m.msg_controllen = room;
  CHECK_EQUAL(recvmsg(s, &m, flags), 1);
  *ctrunc = (m.msg_flags & MSG_CTRUNC) != 0;
  const struct cmsghdr* const c = CMSG_FIRSTHDR(&m);
  if (c == NULL) return 0;
  memcpy(first, CMSG_DATA(c), sizeof *first);
  const int count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  for (int i = 1, fd; i < count; ++i) {
    memcpy(&fd, CMSG_DATA(c) + (size_t)i * sizeof fd, sizeof fd);
    CHECK_EQUAL(close(fd), 0);
  }
  return count;
}

int main(void) {
  int s[2], fds[2], cut, fd;
  char b;
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(send_some(s[0], fds[1], 253), 1);
  CHECK_EQUAL(receive(s[1], sizeof control, 0, &cut, &fd), 253);
  CHECK_EQUAL(cut, 0);
  CHECK_EQUAL(close(fd), 0);
  CHECK_EQUAL(send_some(s[0], fds[1], 254), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(send_some(s[0], 999, 1), -1);
  CHECK_EQUAL(errno, EBADF);
  CHECK_EQUAL(send_some(s[0], fds[1], 3), 1);
  CHECK_EQUAL(close(fds[1]), 0);
  CHECK_EQUAL(receive(s[1], CMSG_LEN(sizeof(int)), MSG_CMSG_CLOEXEC, &cut, &fd), 1);
  CHECK_EQUAL(cut, 1);
  CHECK_EQUAL(fcntl(fd, F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(write(fd, "z", 1), 1);
  CHECK_EQUAL(close(fd), 0);
  CHECK_EQUAL(read(fds[0], &b, 1), 1);
  CHECK_EQUAL(read(fds[0], &b, 1), 0);
  return succeed();
}
