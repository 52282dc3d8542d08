// SPDX-License-Identifier: Apache-2.0
// A process that waits for a lock gets it when the holder closes the file.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../child.h"

static char path[] = "/tmp/filelockXXXXXX";
static int waits(int x) {
  const int fd = open(path, O_RDWR);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  CHECK_EQUAL(fcntl(fd, F_SETLKW, &l), 0);
  return x;
}

int main(void) {
  const int fd = mkstemp(path);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  CHECK_EQUAL(fcntl(fd, F_SETLK, &l), 0);
  const pid_t p = start_process(waits, 0);
  sleep_ms(20);
  CHECK_EQUAL(waitpid(p, NULL, WNOHANG), 0);
  CHECK_EQUAL(close(fd), 0);
  CHECK_EQUAL(status_of(p), 0);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
