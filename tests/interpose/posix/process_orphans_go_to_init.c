// SPDX-License-Identifier: Apache-2.0
// Orphans of a child belong to init: the grandparent neither sees their end nor waits for them.
#define _GNU_SOURCE
#include <signal.h>

#include "../child.h"

static int go[2], gone[2];
static volatile sig_atomic_t ended;
static void note_end(int signo) {
  (void)signo;
  ++ended;
}

static int grandchild(int parent) {
  char byte;
  CHECK_EQUAL(close(go[1]), 0);
  CHECK_EQUAL(read(go[0], &byte, 1), 0);  // the grandparent has waited for its child
  CHECK(getppid() != parent);
  CHECK_EQUAL(close(gone[0]), 0);
  return 33;
}

static int child(int unused) {
  start_process(grandchild, getpid());
  start_process(grandchild, getpid());
  return unused;
}

static int others(int unused) { return unused; }

int main(void) {
  char byte;
  CHECK_EQUAL(pipe(go), 0);
  CHECK_EQUAL(pipe(gone), 0);
  CHECK(signal(SIGCHLD, note_end) != SIG_ERR);
  const pid_t p = start_process(child, 5);
  int status = 0;
  pid_t told;
  while ((told = wait(&status)) < 0) CHECK_EQUAL(errno, EINTR);
  CHECK_EQUAL(told, p);
  CHECK_EQUAL(WEXITSTATUS(status), 5);
  CHECK_EQUAL(ended, 1);
  CHECK_EQUAL(wait(&status), -1);
  CHECK_EQUAL(errno, ECHILD);
  CHECK_EQUAL(close(go[0]), 0);
  CHECK_EQUAL(close(go[1]), 0);
  CHECK_EQUAL(close(gone[1]), 0);
  CHECK_EQUAL(read(gone[0], &byte, 1), 0);  // both have ended
  CHECK_EQUAL(wait(&status), -1);
  CHECK_EQUAL(errno, ECHILD);
  CHECK_EQUAL(ended, 1);
  CHECK_EQUAL(status_of(start_process(others, 7)) >> 8, 7);
  return succeed();
}
