// SPDX-License-Identifier: Apache-2.0
// A process loses its record locks on a file when it closes any descriptor of it.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../child.h"

static char path[] = "/tmp/filelockXXXXXX";
static int tries(int x) {
  const int fd = open(path, O_RDWR);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return fcntl(fd, F_SETLK, &l) == 0 ? x : 9;
}

int main(void) {
  const int fd = mkstemp(path), other = open(path, O_RDONLY);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  CHECK_EQUAL(fcntl(fd, F_SETLK, &l), 0);
  CHECK_EQUAL(WEXITSTATUS(status_of(start_process(tries, 0))), 9);
  CHECK_EQUAL(close(other), 0);
  CHECK_EQUAL(WEXITSTATUS(status_of(start_process(tries, 0))), 0);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
