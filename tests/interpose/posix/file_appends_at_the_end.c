// SPDX-License-Identifier: Apache-2.0
// O_APPEND: each write goes to the end, whatever the position; pwrite too; fcntl clears and sets
// the flag.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../small.h"

int main(void) {
  char name[] = "/tmp/appendXXXXXX", b[32];
  const int f = mkostemp(name, O_APPEND | O_CLOEXEC);
  CHECK(f >= 0);
  const int g = open(name, O_RDWR);
  CHECK_EQUAL(unlink(name), 0);
  CHECK_EQUAL(fcntl(f, F_GETFL) & (O_APPEND | O_ACCMODE), O_APPEND | O_RDWR);
  CHECK_EQUAL(fcntl(f, F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(write(f, "aa", 2), 2);
  CHECK_EQUAL(write(g, "bbbb", 4), 4);
  CHECK_EQUAL(lseek(f, 0, SEEK_CUR), 2);
  CHECK_EQUAL(write(f, "cc", 2), 2);
  CHECK_EQUAL(lseek(f, 0, SEEK_CUR), 6);
  CHECK_EQUAL(pwrite(f, "dd", 2, 0), 2);
  CHECK_EQUAL(lseek(f, 0, SEEK_SET), 0);
  CHECK_EQUAL(read(f, b, sizeof b), 8);
  CHECK_EQUAL(memcmp(b, "bbbbccdd", 8), 0);
  CHECK_EQUAL(fcntl(f, F_SETFL, 0), 0);
  CHECK_EQUAL(fcntl(f, F_GETFL) & (O_APPEND | O_ACCMODE), O_RDWR);
  CHECK_EQUAL(pwrite(f, "e", 1, 0), 1);
  CHECK_EQUAL(fcntl(g, F_SETFL, O_APPEND), 0);
  CHECK_EQUAL(lseek(g, 0, SEEK_SET), 0);
  CHECK_EQUAL(write(g, "f", 1), 1);
  CHECK_EQUAL(pread(f, b, sizeof b, 0), 9);
  CHECK_EQUAL(memcmp(b, "ebbbccddf", 9), 0);
  return succeed();
}
