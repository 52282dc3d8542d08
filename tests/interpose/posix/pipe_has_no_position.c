// SPDX-License-Identifier: Apache-2.0
// A pipe has no position, no length and no pages: lseek, ftruncate, fsync, fallocate and mmap
// return errors.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  int fds[2];
  struct stat s;
  CHECK_EQUAL(pipe(fds), 0);
  FAILS(lseek(fds[0], 0, SEEK_CUR), ESPIPE);
  FAILS(lseek(fds[1], 0, SEEK_END), ESPIPE);
  FAILS(ftruncate(fds[1], 0), EINVAL);
  FAILS(fsync(fds[1]), EINVAL);
  FAILS(fdatasync(fds[1]), EINVAL);
  FAILS(fallocate(fds[1], 0, 0, 10), ESPIPE);
  CHECK_EQUAL(posix_fallocate(fds[1], 0, 10), ESPIPE);
  CHECK_EQUAL(posix_fadvise(fds[1], 0, 0, POSIX_FADV_NORMAL), ESPIPE);
  CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[0], 0) == MAP_FAILED);
  CHECK_EQUAL(errno, ENODEV);
  CHECK_EQUAL(write(fds[1], "abc", 3), 3);
  CHECK_EQUAL(fstat(fds[0], &s), 0);
  CHECK(S_ISFIFO(s.st_mode));
  CHECK_EQUAL(s.st_mode & 0777, 0600);
  CHECK_EQUAL(s.st_size, 0);
  CHECK_EQUAL(s.st_nlink, 1);
  return succeed();
}
