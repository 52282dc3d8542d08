// SPDX-License-Identifier: Apache-2.0
// FIOCLEX, FIONCLEX and FIONBIO have the same effect as fcntl, for files, pipes and sockets;
// unknown commands fail with ENOTTY.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "../small.h"

static void check(int fd) {
  int on = 1;
  CHECK_EQUAL(ioctl(fd, FIOCLEX), 0);
  CHECK_EQUAL(fcntl(fd, F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(ioctl(fd, FIONCLEX), 0);
  CHECK_EQUAL(fcntl(fd, F_GETFD), 0);
  CHECK_EQUAL(ioctl(fd, FIONBIO, &on), 0);
  CHECK_EQUAL(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  on = 0;
  CHECK_EQUAL(ioctl(fd, FIONBIO, &on), 0);
  CHECK_EQUAL(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
  CHECK_EQUAL(ioctl(fd, 0x7777), -1);
  CHECK_EQUAL(errno, ENOTTY);
}

int main(void) {
  int fds[2], s[2];
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  check(fds[0]);
  check(fds[1]);
  check(s[0]);
  check(socket(AF_INET, SOCK_STREAM, 0));
  check(fileno(tmpfile()));
  CHECK_EQUAL(ioctl(999, FIOCLEX), -1);
  CHECK_EQUAL(errno, EBADF);
  return succeed();
}
