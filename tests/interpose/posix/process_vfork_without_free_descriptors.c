// SPDX-License-Identifier: Apache-2.0
// vfork without free descriptors: the child's errno is returned, and its writes to its caller's
// variables.
#define _GNU_SOURCE
#include <errno.h>
#include <sys/resource.h>

#include "../child.h"

int main(void) {
  struct rlimit limit;
  CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = 3;
  CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
  for (int i = 0; i < 3; ++i) {
    volatile int error = 0;
    const pid_t p = vfork();
    CHECK(p >= 0);
    if (p == 0) {
      execl("/nonexistent/program", "program", (char*)NULL);
      error = errno;
      _exit(127);
    }
    CHECK_EQUAL(error, ENOENT);
    CHECK_EQUAL(errno, ENOENT);
    CHECK_EQUAL(WEXITSTATUS(status_of(p)), 127);
  }
  return succeed();
}
