// SPDX-License-Identifier: Apache-2.0
// A user's process limit makes fork fail with EAGAIN, repeatedly, and the program continues;
// without the limit it can fork again.
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/wait.h>

#include "../small.h"

static void run_as_user_without_processes(void) {
  if (getuid() == 0) CHECK_EQUAL(setresuid(64123, 64123, 64123), 0);
  struct rlimit limit;
  CHECK_EQUAL(getrlimit(RLIMIT_NPROC, &limit), 0);
  limit.rlim_cur = 1;
  CHECK_EQUAL(setrlimit(RLIMIT_NPROC, &limit), 0);
  for (int i = 0; i < 5; ++i) {
    CHECK_EQUAL(fork(), -1);
    CHECK_EQUAL(errno, EAGAIN);
  }
  limit.rlim_cur = limit.rlim_max;
  CHECK_EQUAL(setrlimit(RLIMIT_NPROC, &limit), 0);
  const pid_t child = fork();
  if (child == 0) _exit(4);
  int status = 0;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 4);
}

int main(void) {
  run_as_user_without_processes();
  return succeed();
}
