// SPDX-License-Identifier: Apache-2.0
// Two processes that would wait for each other: one of them gets EDEADLK.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../child.h"

static char path[] = "/tmp/filelockXXXXXX";
static int up[2], down[2];
static int lock_byte(int fd, int command, off_t at) {
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
  return fcntl(fd, command, &l);
}
static int child(int x) {
  char c;
  const int fd = open(path, O_RDWR);
  (void)x;
  CHECK_EQUAL(lock_byte(fd, F_SETLK, 1), 0);
  CHECK_EQUAL(write(up[1], "1", 1), 1);
  CHECK_EQUAL(read(down[0], &c, 1), 1);
  if (lock_byte(fd, F_SETLKW, 0) == 0) return 0;
  return errno == EDEADLK ? 1 : 2;
}

int main(void) {
  char c;
  const int fd = mkstemp(path);
  CHECK_EQUAL(pipe(up), 0);
  CHECK_EQUAL(pipe(down), 0);
  CHECK_EQUAL(lock_byte(fd, F_SETLK, 0), 0);
  const pid_t p = start_process(child, 0);
  CHECK_EQUAL(read(up[0], &c, 1), 1);
  CHECK_EQUAL(write(down[1], "2", 1), 1);
  sleep_ms(20);
  const int refused = lock_byte(fd, F_SETLKW, 1) != 0;
  if (refused) CHECK_EQUAL(errno, EDEADLK);
  close(fd);
  CHECK_EQUAL(WEXITSTATUS(status_of(p)) + refused, 1);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
