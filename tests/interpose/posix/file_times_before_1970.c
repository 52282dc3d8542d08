// SPDX-License-Identifier: Apache-2.0
// File times before 1970 that a program sets read back, with their fraction of a second, and so do
// times beyond 32 bits.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../small.h"

static void back(int fd, time_t seconds, long ns) {
  const struct timespec t[2] = {{seconds, ns}, {seconds, ns}};
  struct stat s;
  struct statx x;
  CHECK_EQUAL(futimens(fd, t), 0);
  CHECK_EQUAL(fstat(fd, &s), 0);
  CHECK_EQUAL(s.st_atim.tv_sec, seconds);
  CHECK_EQUAL(s.st_atim.tv_nsec, ns);
  CHECK_EQUAL(s.st_mtim.tv_sec, seconds);
  CHECK_EQUAL(s.st_mtim.tv_nsec, ns);
  CHECK_EQUAL(statx(fd, "", AT_EMPTY_PATH, STATX_MTIME | STATX_ATIME, &x), 0);
  CHECK_EQUAL(x.stx_mtime.tv_sec, seconds);
  CHECK_EQUAL(x.stx_mtime.tv_nsec, ns);
}

int main(void) {
  char name[] = "/tmp/timesXXXXXX";
  const int fd = mkstemp(name);
  CHECK(fd >= 0);
  CHECK_EQUAL(unlink(name), 0);
  back(fd, -14245441, 750000000);
  back(fd, -1, 999999999);
  back(fd, -1, 0);
  back(fd, 0, 1);
  back(fd, 5000000000, 5);
  return succeed();
}
