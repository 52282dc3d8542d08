// SPDX-License-Identifier: Apache-2.0
// statx returns the same as stat: for a name, a descriptor, a link itself, and a subset of the
// fields; unknown flags fail with EINVAL.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "../small.h"

int main(void) {
  char name[] = "/tmp/statxXXXXXX", link[64];
  struct stat s;
  struct statx x;
  const int f = mkstemp(name);
  CHECK_EQUAL(write(f, "12345", 5), 5);
  CHECK_EQUAL(fstat(f, &s), 0);
  CHECK_EQUAL(statx(AT_FDCWD, name, 0, STATX_BASIC_STATS, &x), 0);
  CHECK_EQUAL(x.stx_mask & STATX_BASIC_STATS, STATX_BASIC_STATS);
  CHECK_EQUAL(x.stx_size, 5);
  CHECK_EQUAL(x.stx_mode, s.st_mode);
  CHECK_EQUAL(x.stx_ino, s.st_ino);
  CHECK_EQUAL(x.stx_nlink, 1);
  CHECK_EQUAL(x.stx_uid, getuid());
  CHECK_EQUAL(makedev(x.stx_dev_major, x.stx_dev_minor), s.st_dev);
  CHECK_EQUAL(x.stx_mtime.tv_sec, s.st_mtim.tv_sec);
  CHECK_EQUAL(x.stx_mtime.tv_nsec, s.st_mtim.tv_nsec);
  CHECK_EQUAL(x.stx_blksize, s.st_blksize);
  CHECK_EQUAL(statx(f, "", AT_EMPTY_PATH, STATX_SIZE, &x), 0);
  CHECK_EQUAL(x.stx_size, 5);
  snprintf(link, sizeof link, "%s.l", name);
  CHECK_EQUAL(symlink(name, link), 0);
  CHECK_EQUAL(statx(AT_FDCWD, link, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &x), 0);
  CHECK(S_ISLNK(x.stx_mode));
  CHECK_EQUAL(statx(AT_FDCWD, link, 0, STATX_TYPE, &x), 0);
  CHECK(S_ISREG(x.stx_mode));
  CHECK_EQUAL(unlink(link), 0);
  CHECK_EQUAL(unlink(name), 0);
  CHECK(statx(AT_FDCWD, name, 0, STATX_SIZE, &x) == -1 && errno == ENOENT);
  CHECK(statx(f, "", 0, STATX_SIZE, &x) == -1 && errno == ENOENT);
  CHECK(statx(f, "", AT_EMPTY_PATH, STATX__RESERVED, &x) == -1 && errno == EINVAL);
  CHECK(statx(-1, "", AT_EMPTY_PATH, STATX_SIZE, &x) == -1 && errno == EBADF);
  return succeed();
}
