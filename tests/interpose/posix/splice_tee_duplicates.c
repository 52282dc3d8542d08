// SPDX-License-Identifier: Apache-2.0
// tee copies the content of a pipe into another one and leaves it there.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>

#include "../small.h"

int main(void) {
  int a[2], c[2], count;
  char b[32];
  CHECK_EQUAL(pipe(a), 0);
  CHECK_EQUAL(pipe(c), 0);
  CHECK_EQUAL(write(a[1], "twice", 5), 5);
  CHECK_EQUAL(tee(a[0], c[1], 100, 0), 5);
  CHECK_EQUAL(tee(a[0], c[1], 2, 0), 2);
  CHECK_EQUAL(ioctl(a[0], FIONREAD, &count), 0);
  CHECK_EQUAL(count, 5);
  CHECK_EQUAL(ioctl(c[0], FIONREAD, &count), 0);
  CHECK_EQUAL(count, 7);
  CHECK_EQUAL(read(a[0], b, sizeof b), 5);
  CHECK_EQUAL(memcmp(b, "twice", 5), 0);
  CHECK_EQUAL(read(c[0], b, sizeof b), 7);
  CHECK_EQUAL(memcmp(b, "twicetw", 7), 0);
  CHECK_EQUAL(tee(a[0], c[1], 1, SPLICE_F_NONBLOCK), -1);
  CHECK_EQUAL(errno, EAGAIN);
  const int null = open("/dev/null", O_RDWR);
  CHECK_EQUAL(tee(null, c[1], 1, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(close(a[1]), 0);
  CHECK_EQUAL(tee(a[0], c[1], 1, 0), 0);
  return succeed();
}
