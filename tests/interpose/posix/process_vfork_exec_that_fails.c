// SPDX-License-Identifier: Apache-2.0
// The usual way to learn why exec failed: the child stores errno where its parent reads it. A child
// whose first exec fails may try another.
#define _GNU_SOURCE
#include <errno.h>

#include "../child.h"

static char missing[] = "/nonexistent/program";
static char* const arguments[] = {missing, NULL};
extern char** environ;

int main(void) {
  volatile int error = 0;
  pid_t p = vfork();
  if (p == 0) {
    execve(missing, arguments, environ);
    error = errno;
    _exit(127);
  }
  CHECK_EQUAL(error, ENOENT);
  CHECK_EQUAL(errno, ENOENT);
  CHECK_EQUAL(WEXITSTATUS(status_of(p)), 127);

  volatile int tries = 0;
  p = vfork();
  if (p == 0) {
    ++tries;
    execve("/", arguments, environ);
    error = errno;
    ++tries;
    execl("/bin/sh", "sh", "-c", "exit 4", (char*)NULL);
    _exit(127);
  }
  CHECK_EQUAL(tries, 2);
  CHECK_EQUAL(error, EACCES);
  CHECK_EQUAL(WEXITSTATUS(status_of(p)), 4);

  tries = 0;
  p = vfork();
  if (p == 0) {
    const char* const names[] = {"no-such-program-here", "sh"};
    for (; tries < 2; ++tries) execlp(names[tries], "sh", "-c", "exit 6", (char*)NULL);
    _exit(127);
  }
  CHECK_EQUAL(tries, 1);
  CHECK_EQUAL(WEXITSTATUS(status_of(p)), 6);
  return succeed();
}
