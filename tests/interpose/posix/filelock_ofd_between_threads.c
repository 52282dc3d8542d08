// SPDX-License-Identifier: Apache-2.0
// A lock of the open file description excludes another open of the same process, also by waiting.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../small.h"

static char path[] = "/tmp/filelockXXXXXX";
static volatile int unlocked;
static void* waiter(void* x) {
  const int fd = open(path, O_RDWR);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  CHECK_EQUAL(fcntl(fd, F_OFD_SETLK, &l), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(fcntl(fd, F_OFD_SETLKW, &l), 0);
  CHECK_EQUAL(unlocked, 1);
  close(fd);
  return x;
}

int main(void) {
  const int fd = mkstemp(path);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  CHECK_EQUAL(fcntl(fd, F_OFD_SETLK, &l), 0);
  const pthread_t t = start(waiter, NULL);
  sleep_ms(20);
  unlocked = 1;
  l.l_type = F_UNLCK;
  CHECK_EQUAL(fcntl(fd, F_OFD_SETLK, &l), 0);
  join(t);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
