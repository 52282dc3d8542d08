// SPDX-License-Identifier: Apache-2.0
// Hard links are counted, an unlinked file exists while it is open, symbolic links may dangle and
// loop; readlink truncates; realpath resolves.
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  char dir[] = "/tmp/linksXXXXXX", b[PATH_MAX], want[64];
  struct stat s, t;
  CHECK(mkdtemp(dir) != NULL);
  CHECK_EQUAL(chdir(dir), 0);
  const int f = open("f", O_CREAT | O_RDWR, 0600);
  CHECK_EQUAL(write(f, "x", 1), 1);
  CHECK_EQUAL(link("f", "g"), 0);
  CHECK_EQUAL(stat("g", &s), 0);
  CHECK_EQUAL(s.st_nlink, 2);
  CHECK_EQUAL(fstat(f, &t), 0);
  CHECK(s.st_ino == t.st_ino && s.st_dev == t.st_dev);
  FAILS(link("f", "g"), EEXIST);
  FAILS(link("nothing", "h"), ENOENT);
  CHECK_EQUAL(symlink("./f", "l"), 0);
  CHECK_EQUAL(symlink("l2", "l1"), 0);
  CHECK_EQUAL(symlink("l1", "l2"), 0);
  FAILS(stat("l1", &s), ELOOP);
  FAILS(open("l2", O_RDONLY), ELOOP);
  CHECK(realpath("l1", b) == NULL && errno == ELOOP);
  CHECK_EQUAL(lstat("l", &s), 0);
  CHECK(S_ISLNK(s.st_mode));
  CHECK_EQUAL(s.st_size, 3);
  CHECK_EQUAL(readlink("l", b, 2), 2);
  CHECK_EQUAL(readlink("l", b, sizeof b), 3);
  FAILS(readlink("f", b, sizeof b), EINVAL);
  snprintf(want, sizeof want, "%s/f", dir);
  CHECK(realpath("../../tmp/./../tmp//", b) != NULL);
  CHECK_EQUAL(strcmp(b, "/tmp"), 0);
  CHECK(realpath("l", b) != NULL);
  CHECK_EQUAL(strcmp(b, want), 0);
  char* const made = realpath("g/../g", NULL);
  CHECK(made == NULL && errno == ENOTDIR);
  CHECK_EQUAL(unlink("f"), 0);
  CHECK_EQUAL(unlink("g"), 0);
  CHECK_EQUAL(fstat(f, &s), 0);
  CHECK_EQUAL(s.st_nlink, 0);
  CHECK_EQUAL(pread(f, b, 1, 0), 1);
  FAILS(stat("l", &s), ENOENT);
  FAILS(unlink("."), EISDIR);
  FAILS(rmdir("l"), ENOTDIR);
  FAILS(symlink("", "e"), ENOENT);
  CHECK_EQUAL(unlink("l"), 0);
  CHECK_EQUAL(unlink("l1"), 0);
  CHECK_EQUAL(remove("l2"), 0);
  CHECK_EQUAL(chdir("/"), 0);
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
