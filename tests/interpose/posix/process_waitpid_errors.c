// SPDX-License-Identifier: Apache-2.0
// waitpid without children, or not for the caller's child, returns ECHILD; unknown options return
// EINVAL.
#define _GNU_SOURCE
#include "../child.h"

static int nothing(int x) { return x; }

int main(void) {
  int status;
  CHECK_EQUAL(wait(&status), -1);
  CHECK_EQUAL(errno, ECHILD);
  CHECK_EQUAL(waitpid(getpid(), &status, 0), -1);
  CHECK_EQUAL(errno, ECHILD);
  const pid_t p = start_process(nothing, 0);
  CHECK_EQUAL(waitpid(p, &status, 0x100), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(waitpid(p, NULL, 0), p);
  CHECK_EQUAL(waitpid(p, &status, WNOHANG), -1);
  CHECK_EQUAL(errno, ECHILD);
  return succeed();
}
