// SPDX-License-Identifier: Apache-2.0
// readv and writev scatter and gather; FIONREAD counts the bytes in the pipe; the wrong direction
// fails with EBADF.
#define _GNU_SOURCE
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "../small.h"

int main(void) {
  int fds[2], count = -1;
  char a[3], b[8];
  CHECK_EQUAL(pipe(fds), 0);
  const struct iovec out[] = {{(void*)"ab", 2}, {(void*)"", 0}, {(void*)"cdef", 4}};
  CHECK_EQUAL(writev(fds[1], out, 3), 6);
  CHECK_EQUAL(ioctl(fds[0], FIONREAD, &count), 0);
  CHECK_EQUAL(count, 6);
  const struct iovec in[] = {{a, sizeof a}, {b, sizeof b}};
  CHECK_EQUAL(readv(fds[0], in, 2), 6);
  CHECK_EQUAL(memcmp(a, "abc", 3), 0);
  CHECK_EQUAL(memcmp(b, "def", 3), 0);
  CHECK_EQUAL(write(fds[0], "x", 1), -1);
  CHECK_EQUAL(errno, EBADF);
  CHECK_EQUAL(read(fds[1], a, 1), -1);
  CHECK_EQUAL(errno, EBADF);
  return succeed();
}
