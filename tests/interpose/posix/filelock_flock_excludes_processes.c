// SPDX-License-Identifier: Apache-2.0
// flock excludes other processes; shared locks coexist; the end of the holder releases the lock.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/file.h>

#include "../child.h"

static char path[] = "/tmp/filelockXXXXXX";
static int tries(int how) {
  const int fd = open(path, O_RDWR);
  if (flock(fd, how | LOCK_NB) == 0) return 0;
  return errno == EWOULDBLOCK ? 1 : 2;
}
static int waits(int how) {
  const int fd = open(path, O_RDWR);
  return flock(fd, how) == 0 ? 0 : 2;
}

int main(void) {
  const int fd = mkstemp(path);
  CHECK_EQUAL(flock(fd, LOCK_EX), 0);
  CHECK_EQUAL(WEXITSTATUS(status_of(start_process(tries, LOCK_EX))), 1);
  CHECK_EQUAL(WEXITSTATUS(status_of(start_process(tries, LOCK_SH))), 1);
  CHECK_EQUAL(flock(fd, LOCK_SH), 0);
  CHECK_EQUAL(WEXITSTATUS(status_of(start_process(tries, LOCK_SH))), 0);
  CHECK_EQUAL(WEXITSTATUS(status_of(start_process(tries, LOCK_EX))), 1);
  const pid_t p = start_process(waits, LOCK_EX);
  sleep_ms(20);
  CHECK_EQUAL(waitpid(p, NULL, WNOHANG), 0);
  CHECK_EQUAL(flock(fd, LOCK_UN), 0);
  CHECK_EQUAL(status_of(p), 0);
  CHECK_EQUAL(flock(fd, LOCK_EX | LOCK_NB), 0);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
