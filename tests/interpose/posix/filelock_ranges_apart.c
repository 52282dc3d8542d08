// SPDX-License-Identifier: Apache-2.0
// Locks of disjoint ranges coexist; a fork inherits none.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../child.h"

static int fd;
static int child(int x) {
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 10};
  CHECK_EQUAL(fcntl(fd, F_SETLK, &l), 0);
  l.l_start = 5;
  CHECK_EQUAL(fcntl(fd, F_SETLK, &l), -1);
  l.l_start = 0;
  l.l_len = 0;
  CHECK_EQUAL(fcntl(fd, F_SETLK, &l), -1);
  return x;
}

int main(void) {
  char path[] = "/tmp/filelockXXXXXX";
  fd = mkstemp(path);
  CHECK_EQUAL(unlink(path), 0);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 10};
  CHECK_EQUAL(fcntl(fd, F_SETLK, &l), 0);
  CHECK_EQUAL(status_of(start_process(child, 0)), 0);
  l.l_len = 0;
  CHECK_EQUAL(fcntl(fd, F_SETLK, &l), 0);
  return succeed();
}
