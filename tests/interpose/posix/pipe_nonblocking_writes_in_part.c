// SPDX-License-Identifier: Apache-2.0
// A nonblocking write of more than PIPE_BUF into a pipe writes the part that fits; one of up to
// PIPE_BUF writes all or nothing; a pipe with less than a free page is not writable.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "../small.h"

static int is_writable(int fd) {
  struct pollfd p = {fd, POLLOUT, 0};
  return poll(&p, 1, 0);
}

int main(void) {
  int fds[2], count;
  static char b[100000];
  CHECK_EQUAL(pipe2(fds, O_NONBLOCK), 0);
  CHECK_EQUAL(is_writable(fds[1]), 1);
  CHECK_EQUAL(write(fds[1], b, sizeof b), 65536);
  CHECK_EQUAL(is_writable(fds[1]), 0);
  CHECK_EQUAL(ioctl(fds[0], FIONREAD, &count), 0);
  CHECK_EQUAL(count, 65536);
  CHECK_EQUAL(write(fds[1], b, 1), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(read(fds[0], b, 4096), 4096);
  CHECK_EQUAL(is_writable(fds[1]), 1);
  CHECK_EQUAL(write(fds[1], b, 5000), 4096);
  CHECK_EQUAL(write(fds[1], b, 5000), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 65536);
  CHECK_EQUAL(read(fds[0], b, sizeof b), -1);
  CHECK_EQUAL(errno, EAGAIN);
  return succeed();
}
