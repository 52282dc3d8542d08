// SPDX-License-Identifier: Apache-2.0
// A child of vfork that dies by a signal, and one that leaves by exit(): the parent continues, and
// the child's writes remain.
#define _GNU_SOURCE
#include "../child.h"

static volatile int written;
static volatile int ended;

static void at_end(void) { ++ended; }

int main(void) {
  pid_t p = vfork();
  if (p == 0) {
    written = 1;
    raise(SIGTERM);
    _exit(1);
  }
  CHECK_EQUAL(written, 1);
  CHECK_EQUAL(WTERMSIG(status_of(p)), SIGTERM);

  p = vfork();
  if (p == 0) {
    written = 2;
    abort();
  }
  CHECK_EQUAL(written, 2);
  CHECK_EQUAL(WTERMSIG(status_of(p)), SIGABRT);

  p = vfork();
  if (p == 0) {
    kill(getpid(), SIGKILL);
    _exit(1);
  }
  CHECK_EQUAL(WTERMSIG(status_of(p)), SIGKILL);

  // A child of vfork may call fork.
  p = vfork();
  if (p == 0) {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      written = 4;
      _exit(7);
    }
    written = 3;
    _exit(WEXITSTATUS(status_of(grandchild)));
  }
  CHECK_EQUAL(written, 3);
  CHECK_EQUAL(WEXITSTATUS(status_of(p)), 7);

  // It may also call vfork.
  p = vfork();
  if (p == 0) {
    const pid_t grandchild = vfork();
    if (grandchild == 0) {
      written = 5;
      _exit(8);
    }
    _exit(WEXITSTATUS(status_of(grandchild)));
  }
  CHECK_EQUAL(written, 5);
  CHECK_EQUAL(WEXITSTATUS(status_of(p)), 8);
  CHECK_EQUAL(atexit(at_end), 0);
  CHECK_EQUAL(ended, 0);
  return succeed();
}
