// SPDX-License-Identifier: Apache-2.0
// native: no
// Generated names for new files are the same in every run. This program prints them, and two runs
// must print the same.
#include <sys/stat.h>

#include "check.h"

int main(void) {
  struct stat s;
  char a[] = "nameXXXXXX", b[] = "short", c[L_tmpnam];
  CHECK(mktemp(a) == a);
  CHECK(lstat(a, &s) < 0 && errno == ENOENT);
  CHECK(*mktemp(b) == '\0' && errno == EINVAL);
  printf("%s %s\n", a, tmpnam(c));
  printf("%s\n", tmpnam(NULL));
  unsetenv("TMPDIR");
  CHECK_EQUAL(mkdir("names", 0700), 0);
  char* d = tempnam("names", "begin");
  char* e = tempnam("names", "begin");
  CHECK(d != NULL && e != NULL && strcmp(d, e) != 0);
  CHECK(strncmp(d, "names/begin", 11) == 0);
  printf("%s %s\n", d, e);
  free(d);
  free(e);
  CHECK_EQUAL(rmdir("names"), 0);
  return succeed();
}
