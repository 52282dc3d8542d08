// SPDX-License-Identifier: Apache-2.0
// utimensat and related calls: the access time reads back, with another modification time, by name,
// by descriptor, of a link and of a directory; UTIME_OMIT keeps it, and so does writing.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <utime.h>

#include "../small.h"

static void has(int d, const char* name, long access, long modification) {
  struct stat s;
  struct statx x;
  CHECK_EQUAL(fstatat(d, name, &s, AT_SYMLINK_NOFOLLOW), 0);
  CHECK_EQUAL(s.st_atim.tv_sec, access);
  CHECK_EQUAL(s.st_mtim.tv_sec, modification);
  CHECK_EQUAL(statx(d, name, AT_SYMLINK_NOFOLLOW, STATX_ATIME | STATX_MTIME, &x), 0);
  CHECK_EQUAL(x.stx_atime.tv_sec, access);
  CHECK_EQUAL(x.stx_mtime.tv_sec, modification);
}

int main(void) {
  char dir[] = "/tmp/timesXXXXXX";
  CHECK(mkdtemp(dir) != NULL);
  const int d = open(dir, O_RDONLY);
  const int f = openat(d, "f", O_CREAT | O_RDWR, 0600);
  CHECK_EQUAL(symlinkat("f", d, "l"), 0);
  struct timespec t[2] = {{1000000, 123456789}, {2000000, 987654321}};
  CHECK_EQUAL(utimensat(d, "f", t, 0), 0);
  has(d, "f", 1000000, 2000000);
  struct stat s;
  CHECK_EQUAL(fstat(f, &s), 0);
  CHECK_EQUAL(s.st_atim.tv_nsec, 123456789);
  t[0].tv_nsec = UTIME_OMIT;
  t[1].tv_sec = 3000000;
  CHECK_EQUAL(futimens(f, t), 0);
  has(d, "f", 1000000, 3000000);
  t[0] = (struct timespec){4000000, 0};
  t[1].tv_nsec = UTIME_OMIT;
  CHECK_EQUAL(futimens(f, t), 0);
  has(d, "f", 4000000, 3000000);
  CHECK_EQUAL(write(f, "x", 1), 1);
  CHECK_EQUAL(fstat(f, &s), 0);
  CHECK_EQUAL(s.st_atim.tv_sec, 4000000);
  CHECK(s.st_mtim.tv_sec > 1000000000);
  t[0].tv_sec = 5000000;
  t[1] = (struct timespec){6000000, 0};
  CHECK_EQUAL(utimensat(d, "l", t, AT_SYMLINK_NOFOLLOW), 0);
  has(d, "l", 5000000, 6000000);
  CHECK_EQUAL(fstat(f, &s), 0);
  CHECK_EQUAL(s.st_atim.tv_sec, 4000000);
  CHECK_EQUAL(fchdir(d), 0);
  const struct utimbuf u = {77, 88};
  CHECK_EQUAL(utime("f", &u), 0);
  has(d, "f", 77, 88);
  const struct timeval v[2] = {{11, 12}, {13, 14}};
  CHECK_EQUAL(utimes("f", v), 0);
  has(d, "f", 11, 13);
  CHECK_EQUAL(futimens(f, NULL), 0);
  CHECK_EQUAL(fstat(f, &s), 0);
  CHECK(s.st_atim.tv_sec > 1000000000);
  CHECK_EQUAL(unlinkat(d, "f", 0), 0);
  CHECK_EQUAL(unlinkat(d, "l", 0), 0);
  CHECK_EQUAL(utimes(dir, v), 0);
  CHECK_EQUAL(stat(dir, &s), 0);
  CHECK_EQUAL(s.st_atim.tv_sec, 11);
  CHECK_EQUAL(s.st_mtim.tv_sec, 13);
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
