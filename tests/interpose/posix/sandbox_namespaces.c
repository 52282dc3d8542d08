// SPDX-License-Identifier: Apache-2.0
// unshare: no flags and the file table are permitted to all users, other namespaces to root;
// unknown flags fail with EINVAL.
#define _GNU_SOURCE
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  CHECK_EQUAL(unshare(0), 0);
  CHECK_EQUAL(unshare(CLONE_FILES), 0);
  CHECK_EQUAL(unshare(CLONE_FS), 0);
  CHECK(unshare(CLONE_PARENT) == -1 && errno == EINVAL);
  if (geteuid() != 0) {
    CHECK(unshare(CLONE_NEWUTS) == -1 && errno == EPERM);
    return succeed();
  }
  const pid_t child = fork();
  if (child == 0) _exit(unshare(CLONE_NEWUTS) == 0 || errno == EPERM ? 42 : 1);
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 42 << 8);
  return succeed();
}
