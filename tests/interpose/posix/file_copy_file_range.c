// SPDX-License-Identifier: Apache-2.0
// copy_file_range copies between files by offsets or positions, copies fewer bytes at the end of
// the file, and refuses other kinds of files.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../small.h"

int main(void) {
  char name[] = "/tmp/copyXXXXXX", b[32];
  const int from = mkstemp(name);
  CHECK_EQUAL(unlink(name), 0);
  memcpy(name, "/tmp/copyXXXXXX", sizeof name);
  const int to = mkstemp(name);
  CHECK_EQUAL(unlink(name), 0);
  CHECK_EQUAL(write(from, "0123456789", 10), 10);
  off64_t a = 2, z = 5;
  CHECK_EQUAL(copy_file_range(from, &a, to, &z, 4, 0), 4);
  CHECK_EQUAL(a, 6);
  CHECK_EQUAL(z, 9);
  CHECK_EQUAL(lseek(from, 0, SEEK_CUR), 10);
  CHECK_EQUAL(lseek(to, 0, SEEK_CUR), 0);
  CHECK_EQUAL(pread(to, b, sizeof b, 0), 9);
  CHECK_EQUAL(memcmp(b,
                     "\0\0\0\0\0"
                     "2345",
                     9),
              0);
  CHECK_EQUAL(copy_file_range(from, NULL, to, NULL, 4, 0), 0);
  CHECK_EQUAL(lseek(from, 7, SEEK_SET), 7);
  CHECK_EQUAL(copy_file_range(from, NULL, to, NULL, 100, 0), 3);
  CHECK_EQUAL(lseek(to, 0, SEEK_CUR), 3);
  CHECK_EQUAL(lseek(from, 0, SEEK_CUR), 10);
  CHECK_EQUAL(pread(to, b, sizeof b, 0), 9);
  CHECK_EQUAL(memcmp(b,
                     "789\0\0"
                     "2345",
                     9),
              0);
  CHECK_EQUAL(copy_file_range(from, NULL, to, NULL, 1, 1), -1);
  CHECK_EQUAL(errno, EINVAL);
  a = 0;
  z = 2;
  CHECK_EQUAL(copy_file_range(from, &a, from, &z, 5, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  int fds[2];
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(copy_file_range(from, &a, fds[1], NULL, 5, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(copy_file_range(from, &a, -1, NULL, 5, 0), -1);
  CHECK_EQUAL(errno, EBADF);
  return succeed();
}
