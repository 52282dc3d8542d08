// SPDX-License-Identifier: Apache-2.0
// ftruncate lengthens by zeros and shortens; fallocate reserves, with or without the length, and
// punches holes that read as zeros; their errors.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

static long length(int f) {
  struct stat s;
  CHECK_EQUAL(fstat(f, &s), 0);
  return s.st_size;
}

int main(void) {
  char name[] = "/tmp/holesXXXXXX", b[16];
  const int f = mkstemp(name);
  const int r = open(name, O_RDONLY);
  CHECK_EQUAL(truncate(name, 3), 0);
  CHECK_EQUAL(unlink(name), 0);
  CHECK_EQUAL(length(f), 3);
  CHECK_EQUAL(write(f, "abcdef", 6), 6);
  CHECK_EQUAL(ftruncate(f, 2), 0);
  CHECK_EQUAL(ftruncate(f, 5), 0);
  CHECK_EQUAL(lseek(f, 0, SEEK_CUR), 6);
  CHECK_EQUAL(pread(f, b, sizeof b, 0), 5);
  CHECK_EQUAL(memcmp(b, "ab\0\0\0", 5), 0);
  CHECK_EQUAL(write(f, "z", 1), 1);
  CHECK_EQUAL(length(f), 7);
  FAILS(ftruncate(f, -1), EINVAL);
  FAILS(ftruncate(r, 0), EINVAL);
  FAILS(ftruncate(-1, 0), EBADF);
  FAILS(truncate("/tmp", 0), EISDIR);
  FAILS(truncate("/not/there", 0), ENOENT);
  CHECK_EQUAL(posix_fallocate(f, 0, 100), 0);
  CHECK_EQUAL(length(f), 100);
  CHECK_EQUAL(posix_fallocate(f, -1, 100), EINVAL);
  CHECK_EQUAL(posix_fallocate(f, 0, 0), EINVAL);
  CHECK_EQUAL(posix_fallocate(r, 0, 10), EBADF);
  CHECK_EQUAL(pwrite(f, "abcdef", 6, 0), 6);
  if (fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1, 3) == 0) {
    CHECK_EQUAL(pread(f, b, 6, 0), 6);
    CHECK_EQUAL(memcmp(b, "a\0\0\0ef", 6), 0);
  } else {
    CHECK_EQUAL(errno, EOPNOTSUPP);
  }
  FAILS(fallocate(f, FALLOC_FL_PUNCH_HOLE, 1, 3), EOPNOTSUPP);
  CHECK_EQUAL(length(f), 100);
  FAILS(lseek(f, -1, SEEK_SET), EINVAL);
  FAILS(lseek(f, 0, 77), EINVAL);
  CHECK_EQUAL(lseek(f, 1 << 20, SEEK_SET), 1 << 20);
  CHECK_EQUAL(read(f, b, 1), 0);
  return succeed();
}
