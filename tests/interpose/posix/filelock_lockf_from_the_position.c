// SPDX-License-Identifier: Apache-2.0
// lockf locks from the file's position; F_TEST and F_TLOCK report another process' lock.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../child.h"

static char path[] = "/tmp/filelockXXXXXX";
static int asks(int x) {
  const int fd = open(path, O_RDWR);
  CHECK_EQUAL(lockf(fd, F_TEST, 4), 0);
  CHECK_EQUAL(lseek(fd, 4, SEEK_SET), 4);
  CHECK_EQUAL(lockf(fd, F_TEST, 4), -1);
  CHECK(errno == EAGAIN || errno == EACCES);
  CHECK_EQUAL(lockf(fd, F_TLOCK, 1), -1);
  CHECK(errno == EAGAIN || errno == EACCES);
  return x;
}

int main(void) {
  const int fd = mkstemp(path);
  CHECK_EQUAL(write(fd, "12345678", 8), 8);
  CHECK_EQUAL(lseek(fd, 4, SEEK_SET), 4);
  CHECK_EQUAL(lockf(fd, F_LOCK, 4), 0);
  CHECK_EQUAL(lockf(fd, F_TEST, 4), 0);
  CHECK_EQUAL(status_of(start_process(asks, 0)), 0);
  CHECK_EQUAL(lockf(fd, F_ULOCK, 4), 0);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
