// SPDX-License-Identifier: Apache-2.0
// After fork, parent and child have separate memory, and share a file position.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../child.h"

static int value = 1;
static int child(int fd) {
  char b[4];
  CHECK_EQUAL(value, 2);
  value = 3;
  CHECK_EQUAL(read(fd, b, 4), 4);
  CHECK_EQUAL(memcmp(b, "abcd", 4), 0);
  return 0;
}

int main(void) {
  char path[] = "/tmp/fork_copiesXXXXXX", b[4];
  const int fd = mkstemp(path);
  CHECK(fd >= 0);
  CHECK_EQUAL(unlink(path), 0);
  CHECK_EQUAL(write(fd, "abcdefgh", 8), 8);
  CHECK_EQUAL(lseek(fd, 0, SEEK_SET), 0);
  value = 2;
  CHECK_EQUAL(status_of(start_process(child, fd)), 0);
  CHECK_EQUAL(value, 2);
  CHECK_EQUAL(read(fd, b, 4), 4);
  CHECK_EQUAL(memcmp(b, "efgh", 4), 0);
  return succeed();
}
