// SPDX-License-Identifier: Apache-2.0
// rename replaces a file and an empty directory, renameat2 exchanges two or refuses to replace, and
// impossible renames return their errors.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

static int d;

static void make(const char* name, const char* text) {
  const int f = openat(d, name, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  CHECK(write(f, text, strlen(text)) == (ssize_t)strlen(text) && close(f) == 0);
}

static int starts_with(const char* name) {
  char c = 0;
  const int f = openat(d, name, O_RDONLY);
  CHECK(f >= 0 && read(f, &c, 1) == 1 && close(f) == 0);
  return c;
}

int main(void) {
  char dir[] = "/tmp/renameXXXXXX";
  CHECK(mkdtemp(dir) != NULL);
  d = open(dir, O_RDONLY);
  make("a", "A");
  make("b", "B");
  const int old = openat(d, "b", O_RDONLY);
  CHECK_EQUAL(renameat(d, "a", d, "b"), 0);
  CHECK_EQUAL(starts_with("b"), 'A');
  char c;
  CHECK_EQUAL(read(old, &c, 1), 1);
  CHECK_EQUAL(c, 'B');
  FAILS(renameat(d, "a", d, "b"), ENOENT);
  make("a", "C");
  CHECK_EQUAL(renameat2(d, "a", d, "b", RENAME_EXCHANGE), 0);
  CHECK_EQUAL(starts_with("a"), 'A');
  CHECK_EQUAL(starts_with("b"), 'C');
  FAILS(renameat2(d, "a", d, "b", RENAME_NOREPLACE), EEXIST);
  FAILS(renameat2(d, "a", d, "x", RENAME_EXCHANGE), ENOENT);
  FAILS(renameat2(d, "a", d, "b", RENAME_EXCHANGE | RENAME_NOREPLACE), EINVAL);
  CHECK_EQUAL(renameat2(d, "a", d, "n", RENAME_NOREPLACE), 0);
  CHECK_EQUAL(mkdirat(d, "sub", 0700), 0);
  CHECK_EQUAL(mkdirat(d, "empty", 0700), 0);
  FAILS(renameat(d, "sub", d, "sub/in"), EINVAL);
  FAILS(renameat(d, "b", d, "sub"), EISDIR);
  FAILS(renameat(d, "sub", d, "b"), ENOTDIR);
  CHECK_EQUAL(renameat(d, "b", d, "sub/b"), 0);
  FAILS(renameat(d, "empty", d, "sub"), ENOTEMPTY);
  CHECK_EQUAL(renameat(d, "sub", d, "empty"), 0);
  CHECK_EQUAL(starts_with("empty/b"), 'C');
  CHECK_EQUAL(linkat(d, "n", d, "m", 0), 0);
  CHECK_EQUAL(renameat(d, "n", d, "m"), 0);
  CHECK_EQUAL(unlinkat(d, "n", 0), 0);
  CHECK_EQUAL(unlinkat(d, "m", 0), 0);
  CHECK_EQUAL(unlinkat(d, "empty/b", 0), 0);
  CHECK_EQUAL(unlinkat(d, "empty", AT_REMOVEDIR), 0);
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
