// SPDX-License-Identifier: Apache-2.0
// getdents64 returns whole records if the buffer is too small for all, the rest at the next call,
// nothing at the end; a buffer too small for one record fails with EINVAL.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>

#include "../small.h"

int main(void) {
  char dir[] = "/tmp/getdentsXXXXXX", name[16];
  char b[128] __attribute__((aligned(8)));
  CHECK(mkdtemp(dir) != NULL);
  const int d = open(dir, O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < 40; ++i) {
    snprintf(name, sizeof name, "n%d", i);
    CHECK_EQUAL(close(openat(d, name, O_CREAT | O_RDWR, 0600)), 0);
  }
  for (int round = 0; round < 2; ++round) {
    int count = 0, calls = 0;
    CHECK_EQUAL(lseek(d, 0, SEEK_SET), 0);
    for (ssize_t n; (n = getdents64(d, b, sizeof b)) != 0; ++calls) {
      CHECK(n > 0);
      for (ssize_t at = 0; at < n; ++count) {
        const struct dirent64* const e = (const struct dirent64*)(b + at);
        CHECK(e->d_reclen > 0 && at + e->d_reclen <= n && e->d_ino != 0);
        at += e->d_reclen;
      }
    }
    CHECK_EQUAL(count, 42);
    CHECK(calls > 5);
    CHECK_EQUAL(getdents64(d, b, sizeof b), 0);
  }
  CHECK_EQUAL(lseek(d, 0, SEEK_SET), 0);
  CHECK(getdents64(d, b, 8) == -1 && errno == EINVAL);
  CHECK(getdents64(open("/dev/null", O_RDONLY), b, sizeof b) == -1 && errno == ENOTDIR);
  for (int i = 0; i < 40; ++i) {
    snprintf(name, sizeof name, "n%d", i);
    CHECK_EQUAL(unlinkat(d, name, 0), 0);
  }
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
