// SPDX-License-Identifier: Apache-2.0
// utimensat, futimens and related calls: the modification time reads back to the nanosecond,
// UTIME_OMIT keeps it, a link has its own; bad nanoseconds fail with EINVAL.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <utime.h>

#include "../small.h"

static struct stat of(int d, const char* name) {
  struct stat s;
  CHECK_EQUAL(fstatat(d, name, &s, AT_SYMLINK_NOFOLLOW), 0);
  return s;
}

int main(void) {
  char dir[] = "/tmp/timesXXXXXX";
  CHECK(mkdtemp(dir) != NULL);
  const int d = open(dir, O_RDONLY);
  const int f = openat(d, "f", O_CREAT | O_RDWR, 0600);
  CHECK_EQUAL(symlinkat("f", d, "l"), 0);
  struct timespec t[2] = {{1000000, 123456789}, {2000000, 987654321}};
  CHECK_EQUAL(utimensat(d, "f", t, 0), 0);
  CHECK_EQUAL(of(d, "f").st_mtim.tv_sec, 2000000);
  CHECK_EQUAL(of(d, "f").st_mtim.tv_nsec, 987654321);
  t[0].tv_nsec = UTIME_OMIT;
  t[1] = (struct timespec){3000000, 5};
  CHECK_EQUAL(futimens(f, t), 0);
  CHECK_EQUAL(of(d, "f").st_mtim.tv_sec, 3000000);
  CHECK_EQUAL(of(d, "f").st_mtim.tv_nsec, 5);
  t[0] = (struct timespec){4000000, 0};
  CHECK_EQUAL(utimensat(d, "l", t, AT_SYMLINK_NOFOLLOW), 0);
  CHECK_EQUAL(of(d, "l").st_mtim.tv_sec, 3000000);
  t[1] = (struct timespec){0, UTIME_OMIT};
  CHECK_EQUAL(futimens(f, t), 0);
  CHECK_EQUAL(of(d, "f").st_mtim.tv_sec, 3000000);
  t[0].tv_nsec = 1000000000;
  CHECK_EQUAL(futimens(f, t), -1);
  CHECK_EQUAL(errno, EINVAL);
  const struct timeval v[2] = {{11, 12}, {13, 14}};
  CHECK_EQUAL(futimes(f, v), 0);
  CHECK_EQUAL(of(d, "f").st_mtim.tv_nsec, 14000);
  CHECK_EQUAL(fchdir(d), 0);
  const struct utimbuf u = {77, 88};
  CHECK_EQUAL(utime("f", &u), 0);
  CHECK_EQUAL(of(d, "f").st_mtim.tv_sec, 88);
  CHECK_EQUAL(futimens(f, NULL), 0);
  CHECK(of(d, "f").st_mtim.tv_sec > 1000000000);
  CHECK_EQUAL(unlinkat(d, "f", 0), 0);
  CHECK_EQUAL(unlinkat(d, "l", 0), 0);
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
