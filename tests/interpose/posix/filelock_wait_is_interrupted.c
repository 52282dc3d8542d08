// SPDX-License-Identifier: Apache-2.0
// A handler without SA_RESTART ends the wait for a lock with EINTR.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/file.h>

#include "../child.h"

static char path[] = "/tmp/filelockXXXXXX";
static void note(int signo) { (void)signo; }
static int waits(int by_flock) {
  const int fd = open(path, O_RDWR);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  handle(SIGALRM, note, 0);
  ualarm(20000, 0);
  CHECK_EQUAL(by_flock ? flock(fd, LOCK_EX) : fcntl(fd, F_SETLKW, &l), -1);
  CHECK_EQUAL(errno, EINTR);
  return 0;
}

int main(void) {
  const int fd = mkstemp(path);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  CHECK_EQUAL(fcntl(fd, F_SETLK, &l), 0);
  CHECK_EQUAL(flock(fd, LOCK_EX), 0);
  CHECK_EQUAL(status_of(start_process(waits, 0)), 0);
  CHECK_EQUAL(status_of(start_process(waits, 1)), 0);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
