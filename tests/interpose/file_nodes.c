// SPDX-License-Identifier: Apache-2.0
// Nodes and their directories have the time of creation; allocating space for a file and copying
// into it count as writes; vectored calls without a position work on pipes.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>

#include "check.h"

static long long time_of(const char* path) {
  struct stat s;
  CHECK_EQUAL(lstat(path, &s), 0);
  return s.st_mtim.tv_sec * 1000000000LL + s.st_mtim.tv_nsec;
}

static long long now(void) {
  struct timespec t;
  CHECK_EQUAL(clock_gettime(CLOCK_REALTIME, &t), 0);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pass_time(void) {
  const struct timespec t = {2, 0};
  CHECK_EQUAL(nanosleep(&t, NULL), 0);
}

// Checks `path` in the directory `parent`, just created by a call that returned `result`.
static void made(const char* what, int result, const char* path, const char* parent) {
  CHECK_EQUAL(result, 0);
  const long long latest = now();
  pass_time();
  const long long at = time_of(path);
  printf("%s: %s, its directory %s\n", what, at <= latest ? "then" : "later",
         time_of(parent) == at ? "too" : "not");
}

static int changes(const char* path, long long* before) {
  const long long at = time_of(path);
  const int changed = at > *before;
  *before = at;
  pass_time();
  return changed;
}

int main(void) {
  CHECK_EQUAL(mkdir("nodes", 0700), 0);
  pass_time();
  const int nodes = open("nodes", O_RDONLY | O_DIRECTORY);
  CHECK(nodes >= 0);
  made("mkfifo", mkfifo("nodes/a", 0600), "nodes/a", "nodes");
  made("mkfifoat", mkfifoat(nodes, "b", 0600), "nodes/b", "nodes");
  made("mknod", mknod("nodes/c", S_IFREG | 0600, 0), "nodes/c", "nodes");
  made("mknodat", mknodat(nodes, "d", S_IFIFO | 0600, 0), "nodes/d", "nodes");
  CHECK_EQUAL(mknod("nodes/a", S_IFREG | 0600, 0), -1);
  CHECK_EQUAL(errno, EEXIST);

  const int fd = open("nodes/c", O_RDWR);
  CHECK_EQUAL(write(fd, "0123456789", 10), 10);
  long long at = 0;
  changes("nodes/c", &at);
  CHECK_EQUAL(posix_fallocate(fd, 0, 100), 0);
  printf("posix_fallocate: %d", changes("nodes/c", &at));
  CHECK_EQUAL(fallocate(fd, 0, 0, 200), 0);
  printf(", fallocate: %d", changes("nodes/c", &at));
  const struct iovec v = {"xyz", 3};
  CHECK_EQUAL(pwritev2(fd, &v, 1, 5, 0), 3);
  printf(", pwritev2: %d", changes("nodes/c", &at));
  off64_t from = 0, to = 300;
  const ssize_t copied = copy_file_range(fd, &from, fd, &to, 10, 0);
  CHECK_EQUAL(copied, 10);
  printf(", copy_file_range: %d\n", changes("nodes/c", &at));
  char b[12] = {0};
  CHECK_EQUAL(pread(fd, b, 10, 300), 10);
  printf("%s\n", b);
  sync();

  int ends[2];
  CHECK_EQUAL(pipe(ends), 0);
  CHECK_EQUAL(pwritev2(ends[1], &v, 1, -1, 0), 3);
  const struct iovec in = {b, sizeof b};
  CHECK_EQUAL(preadv2(ends[0], &in, 1, -1, 0), 3);
  printf("%.3s\n", b);
  CHECK_EQUAL(pwritev2(ends[1], &v, 1, 0, 0), -1);
  CHECK_EQUAL(errno, ESPIPE);
  for (const char* name = "abcd"; *name != '\0'; ++name) {
    const char one[] = {*name, '\0'};
    CHECK_EQUAL(unlinkat(nodes, one, 0), 0);
  }
  CHECK_EQUAL(rmdir("nodes"), 0);
  return succeed();
}
