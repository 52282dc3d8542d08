// SPDX-License-Identifier: Apache-2.0
// open's refusals: O_EXCL of an existing file, O_NOFOLLOW of a link, O_DIRECTORY of a file, a
// directory for writing, a name under a file, an empty and a very long name.
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  char dir[] = "/tmp/openXXXXXX";
  CHECK(mkdtemp(dir) != NULL);
  const int d = open(dir, O_RDONLY | O_DIRECTORY);
  CHECK(d >= 0);
  const int f = openat(d, "f", O_CREAT | O_EXCL | O_WRONLY | O_TRUNC, 0640);
  CHECK(f >= 0);
  CHECK_EQUAL(symlinkat("f", d, "l"), 0);
  FAILS(openat(d, "f", O_CREAT | O_EXCL | O_RDWR, 0600), EEXIST);
  FAILS(openat(d, "l", O_CREAT | O_EXCL | O_RDWR, 0600), EEXIST);
  FAILS(openat(d, "l", O_RDONLY | O_NOFOLLOW), ELOOP);
  FAILS(openat(d, "f", O_RDONLY | O_DIRECTORY), ENOTDIR);
  FAILS(openat(d, "f/x", O_RDONLY), ENOTDIR);
  FAILS(openat(d, ".", O_WRONLY), EISDIR);
  FAILS(openat(d, "new/", O_CREAT | O_WRONLY, 0600), EISDIR);
  FAILS(openat(d, "", O_RDONLY), ENOENT);
  FAILS(openat(f, "x", O_RDONLY), ENOTDIR);
  FAILS(openat(-1, "x", O_RDONLY), EBADF);
  CHECK(openat(-1, dir, O_RDONLY) >= 0);
  char name[PATH_MAX + 8];
  memset(name, 'n', sizeof name);
  name[NAME_MAX + 1] = 0;
  FAILS(openat(d, name, O_CREAT | O_RDWR, 0600), ENAMETOOLONG);
  FAILS(read(f, name, 1), EBADF);
  CHECK_EQUAL(unlinkat(d, "f", 0), 0);
  FAILS(openat(d, "l", O_RDONLY), ENOENT);
  CHECK_EQUAL(unlinkat(d, "l", 0), 0);
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
