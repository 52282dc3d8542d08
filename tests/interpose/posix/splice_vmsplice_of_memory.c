// SPDX-License-Identifier: Apache-2.0
// vmsplice puts the caller's memory into a pipe, and takes a pipe's bytes into memory.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/uio.h>

#include "../small.h"

int main(void) {
  int fds[2];
  char b[16], c[3];
  CHECK_EQUAL(pipe(fds), 0);
  const struct iovec out[] = {{(void*)"abc", 3}, {(void*)"defg", 4}};
  CHECK_EQUAL(vmsplice(fds[1], out, 2, 0), 7);
  CHECK_EQUAL(read(fds[0], b, 5), 5);
  CHECK_EQUAL(memcmp(b, "abcde", 5), 0);
  const struct iovec in[] = {{c, 1}, {b, sizeof b}};
  CHECK_EQUAL(vmsplice(fds[0], in, 2, 0), 2);
  CHECK_EQUAL(c[0], 'f');
  CHECK_EQUAL(b[0], 'g');
  const int null = open("/dev/null", O_RDWR);
  CHECK_EQUAL(vmsplice(null, out, 2, 0), -1);
  CHECK_EQUAL(errno, EBADF);
  CHECK_EQUAL(vmsplice(fds[1], out, 0, 0), 0);
  return succeed();
}
