// SPDX-License-Identifier: Apache-2.0
// RLIMIT_CPU: a process that computes longer than its soft limit gets SIGXCPU.
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  const pid_t child = fork();
  if (child == 0) {
    const struct rlimit none = {0, 0}, r = {1, 3};
    if (setrlimit(RLIMIT_CORE, &none) != 0 || setrlimit(RLIMIT_CPU, &r) != 0) _exit(1);
    for (long i = 0; i < 2000000000L; ++i) {
      if (now_ns(CLOCK_PROCESS_CPUTIME_ID) > 4000 * MS) _exit(2);
    }
    _exit(3);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK(WIFSIGNALED(status));
  CHECK_EQUAL(WTERMSIG(status), SIGXCPU);
  return succeed();
}
