// SPDX-License-Identifier: Apache-2.0
// popen accepts "r" or "w", with or without "e": other modes fail with EINVAL, and start nothing.
#define _GNU_SOURCE
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  CHECK(popen("true", "x") == NULL && errno == EINVAL);
  CHECK(popen("true", "") == NULL && errno == EINVAL);
  CHECK(popen("true", "rw") == NULL && errno == EINVAL);
  CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
  return succeed();
}
