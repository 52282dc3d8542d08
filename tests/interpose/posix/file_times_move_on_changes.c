// SPDX-License-Identifier: Apache-2.0
// A write updates the modification and change times, a chmod only the change time, and neither is
// later than the clock; new files in a directory update its time.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../small.h"

static long long ns(struct timespec t) { return t.tv_sec * 1000000000LL + t.tv_nsec; }

static struct stat of(int fd) {
  struct stat s;
  CHECK_EQUAL(fstat(fd, &s), 0);
  return s;
}

int main(void) {
  char dir[] = "/tmp/movedXXXXXX";
  CHECK(mkdtemp(dir) != NULL);
  const int d = open(dir, O_RDONLY);
  const int f = openat(d, "f", O_CREAT | O_RDWR, 0600);
  struct stat before = of(f);
  sleep_ms(30);
  CHECK_EQUAL(write(f, "x", 1), 1);
  struct stat after = of(f);
  CHECK(ns(after.st_mtim) > ns(before.st_mtim));
  CHECK(ns(after.st_ctim) > ns(before.st_ctim));
  CHECK(ns(after.st_mtim) <= now_ns(CLOCK_REALTIME));
  before = after;
  sleep_ms(30);
  CHECK_EQUAL(ftruncate(f, 10), 0);
  after = of(f);
  CHECK(ns(after.st_mtim) > ns(before.st_mtim));
  const struct stat old = of(d);
  sleep_ms(30);
  CHECK_EQUAL(close(openat(d, "g", O_CREAT | O_RDWR, 0600)), 0);
  CHECK(ns(of(d).st_mtim) > ns(old.st_mtim));
  CHECK_EQUAL(unlinkat(d, "f", 0), 0);
  CHECK_EQUAL(unlinkat(d, "g", 0), 0);
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
