// SPDX-License-Identifier: Apache-2.0
// F_SETLKW waits until the holder in another process unlocks or ends.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../child.h"

static char path[] = "/tmp/filelockXXXXXX";
static int ready[2];
static int holder(int unlocks) {
  const int fd = open(path, O_RDWR);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  CHECK_EQUAL(fcntl(fd, F_SETLK, &l), 0);
  CHECK_EQUAL(write(ready[1], "r", 1), 1);
  sleep_ms(20);
  CHECK_EQUAL(pwrite(fd, "done", 4, 0), 4);
  l.l_type = F_UNLCK;
  if (unlocks) CHECK_EQUAL(fcntl(fd, F_SETLK, &l), 0);
  if (unlocks) sleep_ms(20);
  return 0;
}

int main(void) {
  const int fd = mkstemp(path);
  CHECK_EQUAL(pipe(ready), 0);
  for (int unlocks = 0; unlocks < 2; ++unlocks) {
    char b[4];
    CHECK_EQUAL(pwrite(fd, "....", 4, 0), 4);
    const pid_t p = start_process(holder, unlocks);
    CHECK_EQUAL(read(ready[0], b, 1), 1);
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CHECK_EQUAL(fcntl(fd, F_SETLK, &l), -1);
    CHECK(errno == EAGAIN || errno == EACCES);
    CHECK_EQUAL(fcntl(fd, F_SETLKW, &l), 0);
    CHECK_EQUAL(pread(fd, b, 4, 0), 4);
    CHECK_EQUAL(memcmp(b, "done", 4), 0);
    l.l_type = F_UNLCK;
    CHECK_EQUAL(fcntl(fd, F_SETLK, &l), 0);
    CHECK_EQUAL(status_of(p), 0);
  }
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
