// SPDX-License-Identifier: Apache-2.0
// A child or a grandchild whose stack overflows dies of SIGSEGV, and its parent sees that: in the
// first thread of a child and in another thread; also with a handler that has no stack to run on.
#define _GNU_SOURCE
#include <sys/wait.h>

#include "../small.h"

static volatile int never_ends = 1;
__attribute__((noinline)) static int overflow(volatile char* above) {
  volatile char here[4096];
  if (!never_ends) return 0;
  here[0] = above == NULL ? 0 : *above;
  return overflow(here) + here[0];
}
static void* overflows(void* x) {
  overflow(NULL);
  return x;
}
static void ignored(int signo) { (void)signo; }

static void first_thread(void) { overflow(NULL); }
static void other_thread(void) { join(start(overflows, NULL)); }
static void no_room_for_the_handler(void) {
  handle(SIGSEGV, ignored, 0);
  overflow(NULL);
}
static void grandchild(void) {
  const pid_t child = fork();
  if (child == 0) overflow(NULL);
  int status = 0;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  _exit(3);
}

static int status_of(void (*act)(void)) {
  const pid_t child = fork();
  if (child == 0) {
    act();
    _exit(0);
  }
  int status = 0;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  return status;
}

int main(void) {
  void (*const overflowing[])(void) = {first_thread, other_thread, no_room_for_the_handler};
  for (unsigned i = 0; i < sizeof overflowing / sizeof *overflowing; ++i) {
    const int status = status_of(overflowing[i]);
    CHECK(WIFSIGNALED(status));
    CHECK_EQUAL(WTERMSIG(status), SIGSEGV);
  }
  const int status = status_of(grandchild);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  return succeed();
}
