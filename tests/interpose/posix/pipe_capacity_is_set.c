// SPDX-License-Identifier: Apache-2.0
// F_SETPIPE_SZ rounds up to pages and to a power of two, F_GETPIPE_SZ returns it at both ends; a
// pipe holds that much and does not shrink below its content.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../small.h"

int main(void) {
  int fds[2];
  static char page[4096];
  CHECK_EQUAL(pipe2(fds, O_NONBLOCK), 0);
  CHECK_EQUAL(fcntl(fds[0], F_GETPIPE_SZ), 65536);
  CHECK_EQUAL(fcntl(fds[1], F_GETPIPE_SZ), 65536);
  CHECK_EQUAL(fcntl(fds[1], F_SETPIPE_SZ, 5000), 8192);
  CHECK_EQUAL(fcntl(fds[0], F_GETPIPE_SZ), 8192);
  CHECK_EQUAL(fcntl(fds[0], F_SETPIPE_SZ, 1), 4096);
  CHECK_EQUAL(write(fds[1], page, sizeof page), 4096);
  CHECK_EQUAL(write(fds[1], page, 1), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(fcntl(fds[0], F_SETPIPE_SZ, 3 * 4096), 4 * 4096);
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(write(fds[1], page, sizeof page), 4096);
  CHECK_EQUAL(write(fds[1], page, sizeof page), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(fcntl(fds[1], F_SETPIPE_SZ, 4096), -1);
  CHECK_EQUAL(errno, EBUSY);
  CHECK_EQUAL(fcntl(fds[1], F_GETPIPE_SZ), 4 * 4096);
  const int null = open("/dev/null", O_RDWR);
  CHECK_EQUAL(fcntl(null, F_GETPIPE_SZ), -1);
  CHECK_EQUAL(errno, EBADF);
  return succeed();
}
