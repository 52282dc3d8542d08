// SPDX-License-Identifier: Apache-2.0
// A program that requests dispatch of its system calls to a handler gets it, or gets an error; in
// both cases it continues, and so do its children. The cycle counter is available.
#define _GNU_SOURCE
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../small.h"

enum { kSetDispatch = 59, kOff = 0, kOn = 1, kAllow = 0, kBlock = 1 };
static volatile char selector = kAllow;
static volatile sig_atomic_t caught;

static void on_call(int signo) {
  (void)signo;
  selector = kAllow;
  ++caught;
}

static void dispatch(void) {
  handle(SIGSYS, on_call, 0);
  if (prctl(kSetDispatch, kOn, 0, 0, &selector) != 0) {
    CHECK_EQUAL(errno, EINVAL);
    return;
  }
  selector = kBlock;
  (void)syscall(SYS_getppid);
  CHECK_EQUAL(caught, 1);
  CHECK_EQUAL(prctl(kSetDispatch, kOff, 0, 0, 0), 0);
}

int main(void) {
  int status = 0, mode = 0;
  dispatch();
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    caught = 0;
    dispatch();
    _exit(7);
  }
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(WEXITSTATUS(status), 7);
  CHECK_EQUAL(prctl(PR_GET_TSC, &mode, 0, 0, 0), 0);
  CHECK_EQUAL(mode, PR_TSC_ENABLE);
  return succeed();
}
