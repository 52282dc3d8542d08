// SPDX-License-Identifier: Apache-2.0
// fstat returns one inode for both ends of a pipe, and another one for each pipe; each end of a
// socket pair has a separate one.
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/stat.h>

#include "../small.h"

static struct stat of(int fd) {
  struct stat s;
  CHECK_EQUAL(fstat(fd, &s), 0);
  return s;
}

int main(void) {
  int a[2], b[2], s[2];
  CHECK_EQUAL(pipe(a), 0);
  CHECK_EQUAL(pipe(b), 0);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  CHECK(S_ISFIFO(of(a[1]).st_mode) && S_ISSOCK(of(s[0]).st_mode));
  CHECK(of(a[0]).st_ino == of(dup(a[0])).st_ino);
  CHECK(of(a[0]).st_ino != of(b[0]).st_ino);
  CHECK(of(s[0]).st_ino != of(s[1]).st_ino);
  CHECK(of(a[0]).st_ino == of(a[1]).st_ino);
  CHECK(of(a[0]).st_dev == of(a[1]).st_dev);
  return succeed();
}
