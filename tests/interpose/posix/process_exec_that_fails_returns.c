// SPDX-License-Identifier: Apache-2.0
// An exec that fails returns its error, and the process continues unchanged.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../child.h"

int main(void) {
  char* const words[] = {(char*)"x", NULL};
  char path[] = "/tmp/exec_failsXXXXXX";
  const int fd = mkstemp(path);
  CHECK(fd >= 0);
  CHECK_EQUAL(fcntl(fd, F_SETFD, FD_CLOEXEC), 0);
  CHECK_EQUAL(execv("/nonexistent/program", words), -1);
  CHECK_EQUAL(errno, ENOENT);
  CHECK_EQUAL(execv("/tmp", words), -1);
  CHECK_EQUAL(errno, EACCES);
  CHECK_EQUAL(execv(path, words), -1);
  CHECK_EQUAL(errno, EACCES);
  CHECK_EQUAL(fcntl(fd, F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(unlink(path), 0);
  CHECK_EQUAL(execvp("no-such-program-anywhere", words), -1);
  CHECK_EQUAL(errno, ENOENT);
  return succeed();
}
