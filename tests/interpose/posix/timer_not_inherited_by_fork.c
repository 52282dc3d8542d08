// SPDX-License-Identifier: Apache-2.0
// A child of fork has none of its parent's timers.
#define _GNU_SOURCE
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  timer_t t;
  int status;
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, NULL, &t), 0);
  const pid_t child = fork();
  if (child == 0) {
    struct itimerspec v;
    CHECK_EQUAL(timer_gettime(t, &v), -1);
    CHECK_EQUAL(errno, EINVAL);
    CHECK_EQUAL(alarm(0), 0);
    _exit(0);
  }
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  return succeed();
}
