// SPDX-License-Identifier: Apache-2.0
// PR_SET_CHILD_SUBREAPER: orphans become children of the process that set it, which collects them;
// its own children do not inherit the attribute.
#define _GNU_SOURCE
#include <sys/prctl.h>

#include "../child.h"

static int pipe_ends[2];

static int grandchild(int parent) {
  while (getppid() == parent) sleep_ms(1);
  const pid_t adopted_by = getppid();
  CHECK_EQUAL(write(pipe_ends[1], &adopted_by, sizeof adopted_by), sizeof adopted_by);
  return 33;
}

static int child(int unused) {
  int set = -1;
  CHECK_EQUAL(prctl(PR_GET_CHILD_SUBREAPER, &set), 0);
  CHECK_EQUAL(set, 0);
  start_process(grandchild, getpid());
  return unused;
}

static int collects(int unused) {
  int set = -1, status = 0;
  pid_t adopted_by = 0;
  CHECK_EQUAL(pipe(pipe_ends), 0);
  CHECK_EQUAL(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  CHECK_EQUAL(prctl(PR_GET_CHILD_SUBREAPER, &set), 0);
  CHECK_EQUAL(set, 1);
  CHECK_EQUAL(status_of(start_process(child, 0)), 0);
  CHECK_EQUAL(read(pipe_ends[0], &adopted_by, sizeof adopted_by), sizeof adopted_by);
  CHECK_EQUAL(adopted_by, getpid());
  CHECK(waitpid(-1, &status, 0) > 0);
  CHECK_EQUAL(WEXITSTATUS(status), 33);
  CHECK_EQUAL(waitpid(-1, &status, 0), -1);
  CHECK_EQUAL(errno, ECHILD);
  return unused;
}

int main(void) {
  CHECK_EQUAL(status_of(start_process(collects, 0)), 0);
  return succeed();
}
