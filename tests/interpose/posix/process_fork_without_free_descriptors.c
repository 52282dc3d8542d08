// SPDX-License-Identifier: Apache-2.0
// fork needs no descriptor: it works when the limit leaves none, and the child has the limit too.
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  struct rlimit r, old;
  CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &old), 0);
  r = old;
  r.rlim_cur = 3;
  CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &r), 0);
  CHECK(dup(0) == -1 && errno == EMFILE);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) _exit(dup(0) == -1 && errno == EMFILE ? 42 : 1);
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 42 << 8);
  return succeed();
}
