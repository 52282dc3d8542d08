// SPDX-License-Identifier: Apache-2.0
// readdir returns every name once; telldir and seekdir return to a place, rewinddir to the start,
// and then new entries are seen.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "../small.h"

static int count(DIR* d) {
  int n = 0;
  errno = 0;
  while (readdir(d) != NULL) ++n;
  CHECK_EQUAL(errno, 0);
  return n;
}

int main(void) {
  char dir[] = "/tmp/dirXXXXXX", name[16];
  CHECK(mkdtemp(dir) != NULL);
  DIR* const d = opendir(dir);
  CHECK(d != NULL);
  CHECK_EQUAL(fcntl(dirfd(d), F_GETFD), FD_CLOEXEC);
  for (int i = 0; i < 300; ++i) {
    snprintf(name, sizeof name, "n%d", i);
    CHECK_EQUAL(close(openat(dirfd(d), name, O_CREAT | O_RDWR, 0600)), 0);
  }
  rewinddir(d);
  CHECK_EQUAL(count(d), 302);
  CHECK_EQUAL(count(d), 0);
  rewinddir(d);
  for (int i = 0; i < 100; ++i) CHECK(readdir(d) != NULL);
  const long at = telldir(d);
  const struct dirent* e = readdir(d);
  CHECK(e != NULL);
  snprintf(name, sizeof name, "%.15s", e->d_name);
  CHECK_EQUAL(count(d), 201);
  seekdir(d, at);
  e = readdir(d);
  CHECK_EQUAL(strcmp(e->d_name, name), 0);
  CHECK_EQUAL(count(d), 201);
  CHECK_EQUAL(mkdirat(dirfd(d), "sub", 0700), 0);
  rewinddir(d);
  CHECK_EQUAL(count(d), 303);
  rewinddir(d);
  int seen = 0;
  while ((e = readdir(d)) != NULL) {
    if (strcmp(e->d_name, "sub") == 0) seen += e->d_type == DT_DIR || e->d_type == DT_UNKNOWN;
    if (e->d_name[0] == 'n') CHECK_EQUAL(unlinkat(dirfd(d), e->d_name, 0), 0);
  }
  CHECK_EQUAL(seen, 1);
  CHECK_EQUAL(rmdir(dir), -1);
  CHECK_EQUAL(errno, ENOTEMPTY);
  CHECK_EQUAL(unlinkat(dirfd(d), "sub", AT_REMOVEDIR), 0);
  CHECK_EQUAL(closedir(d), 0);
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
