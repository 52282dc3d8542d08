// SPDX-License-Identifier: Apache-2.0
// A lock of flock belongs to the open file: copies share it, a second open does not.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/file.h>

#include "../small.h"

int main(void) {
  char path[] = "/tmp/filelockXXXXXX";
  const int a = mkstemp(path), b = open(path, O_RDWR), copy = dup(a);
  CHECK_EQUAL(flock(a, LOCK_EX), 0);
  CHECK_EQUAL(flock(copy, LOCK_EX | LOCK_NB), 0);
  CHECK_EQUAL(flock(b, LOCK_EX | LOCK_NB), -1);
  CHECK_EQUAL(errno, EWOULDBLOCK);
  CHECK_EQUAL(close(a), 0);
  CHECK_EQUAL(flock(b, LOCK_SH | LOCK_NB), -1);
  CHECK_EQUAL(flock(copy, LOCK_UN), 0);
  CHECK_EQUAL(flock(b, LOCK_EX | LOCK_NB), 0);
  CHECK_EQUAL(flock(1000, LOCK_EX), -1);
  CHECK_EQUAL(errno, EBADF);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
