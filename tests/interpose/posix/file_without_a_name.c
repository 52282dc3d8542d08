// SPDX-License-Identifier: Apache-2.0
// O_TMPFILE makes a file without a name; linkat by /proc/self/fd can give it one, unless it was
// opened with O_EXCL.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../small.h"

int main(void) {
  char dir[] = "/tmp/namelessXXXXXX", proc[64], name[64], b[8];
  struct stat s;
  CHECK(mkdtemp(dir) != NULL);
  const int f = open(dir, O_TMPFILE | O_RDWR, 0600);
  CHECK(f >= 0);
  CHECK_EQUAL(fstat(f, &s), 0);
  CHECK_EQUAL(s.st_nlink, 0);
  CHECK_EQUAL(write(f, "abc", 3), 3);
  snprintf(proc, sizeof proc, "/proc/self/fd/%d", f);
  snprintf(name, sizeof name, "%s/named", dir);
  CHECK_EQUAL(linkat(AT_FDCWD, proc, AT_FDCWD, name, AT_SYMLINK_FOLLOW), 0);
  CHECK_EQUAL(fstat(f, &s), 0);
  CHECK_EQUAL(s.st_nlink, 1);
  const int again = open(name, O_RDONLY);
  CHECK_EQUAL(read(again, b, sizeof b), 3);
  CHECK_EQUAL(unlink(name), 0);
  const int x = open(dir, O_TMPFILE | O_RDWR | O_EXCL, 0600);
  CHECK(x >= 0);
  snprintf(proc, sizeof proc, "/proc/self/fd/%d", x);
  CHECK_EQUAL(linkat(AT_FDCWD, proc, AT_FDCWD, name, AT_SYMLINK_FOLLOW), -1);
  CHECK_EQUAL(errno, ENOENT);
  CHECK_EQUAL(open(dir, O_TMPFILE | O_RDONLY, 0600), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
