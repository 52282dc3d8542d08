// SPDX-License-Identifier: Apache-2.0
// /proc/self: exe is the program, cmdline and environ are those it was started with, comm is its
// name, cwd and root are links, status and stat contain its number and parent.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../small.h"

static char b[65536];
static ssize_t content(const char* name) {
  const int f = open(name, O_RDONLY);
  CHECK(f >= 0);
  ssize_t done = 0;
  for (ssize_t n; (n = read(f, b + done, sizeof b - 1 - (size_t)done)) > 0;) done += n;
  b[done] = 0;
  CHECK_EQUAL(close(f), 0);
  return done;
}

int main(int argc, char** argv) {
  char path[128], want[64];
  CHECK_EQUAL(argc, 1);
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  CHECK(n > 0);
  path[n] = 0;
  CHECK_EQUAL(strcmp(strrchr(path, '/') + 1, program_invocation_short_name), 0);
  n = content("/proc/self/cmdline");
  CHECK_EQUAL(n, strlen(argv[0]) + 1);
  CHECK_EQUAL(strcmp(b, argv[0]), 0);
  CHECK_EQUAL(content("/proc/self/comm"), strlen(b));
  CHECK_EQUAL(strncmp(b, program_invocation_short_name, 15), 0);
  struct stat s, t;
  CHECK_EQUAL(stat("/proc/self/cwd", &s), 0);
  CHECK_EQUAL(stat(".", &t), 0);
  CHECK(s.st_ino == t.st_ino);
  CHECK_EQUAL(atoi((content("/proc/self/stat"), b)), getpid());
  content("/proc/self/status");
  snprintf(want, sizeof want, "\nPid:\t%d\n", getpid());
  CHECK(strstr(b, want) != NULL);
  snprintf(want, sizeof want, "\nPPid:\t%d\n", getppid());
  CHECK(strstr(b, want) != NULL);
  snprintf(want, sizeof want, "\nUid:\t%d\t%d\t", getuid(), geteuid());
  CHECK(strstr(b, want) != NULL);
  CHECK(strstr(b, "\nThreads:\t1\n") != NULL);
  snprintf(want, sizeof want, "/proc/%d/cmdline", getpid());
  CHECK(content(want) > 0);
  content("/proc/self/limits");
  CHECK(strstr(b, "Max open files") != NULL);
  return succeed();
}
