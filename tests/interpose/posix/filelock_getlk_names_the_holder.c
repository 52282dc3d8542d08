// SPDX-License-Identifier: Apache-2.0
// F_GETLK returns the type, the range and the process of a conflicting lock.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../child.h"

static char path[] = "/tmp/filelockXXXXXX";
static pid_t parent;
static int asks(int x) {
  const int fd = open(path, O_RDWR);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 100};
  CHECK_EQUAL(fcntl(fd, F_GETLK, &l), 0);
  CHECK_EQUAL(l.l_type, F_RDLCK);
  CHECK_EQUAL(l.l_start, 10);
  CHECK_EQUAL(l.l_len, 5);
  CHECK_EQUAL(l.l_pid, parent);
  l.l_type = F_RDLCK;
  CHECK_EQUAL(fcntl(fd, F_GETLK, &l), 0);
  CHECK_EQUAL(l.l_type, F_UNLCK);
  return x;
}

int main(void) {
  const int fd = mkstemp(path);
  parent = getpid();
  struct flock l = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5};
  CHECK_EQUAL(fcntl(fd, F_SETLK, &l), 0);
  CHECK_EQUAL(status_of(start_process(asks, 0)), 0);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
