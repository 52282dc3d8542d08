// SPDX-License-Identifier: Apache-2.0
// /proc/self is a link to the process' number, /proc/thread-self to the thread's.
#define _GNU_SOURCE
#include "../small.h"

int main(void) {
  char path[128], want[64];
  ssize_t n = readlink("/proc/self", path, sizeof path - 1);
  CHECK(n > 0);
  path[n] = 0;
  snprintf(want, sizeof want, "%d", getpid());
  CHECK_EQUAL(strcmp(path, want), 0);
  n = readlink("/proc/thread-self", path, sizeof path - 1);
  CHECK(n > 0);
  path[n] = 0;
  snprintf(want, sizeof want, "%d/task/%d", getpid(), gettid());
  CHECK_EQUAL(strcmp(path, want), 0);
  return succeed();
}
