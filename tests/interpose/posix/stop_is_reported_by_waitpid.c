// SPDX-License-Identifier: Apache-2.0
// When a child stops itself, waitpid with WUNTRACED reports the stop once, WCONTINUED that it
// continues, and every wait its end.
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    raise(SIGSTOP);
    _exit(7);
  }
  int status = 0;
  for (int round = 0; round < 2; ++round) {
    CHECK_EQUAL(waitpid(child, &status, WUNTRACED), child);
    CHECK_EQUAL(WIFSTOPPED(status), 1);
    CHECK_EQUAL(WSTOPSIG(status), SIGSTOP);
    CHECK_EQUAL(WIFEXITED(status), 0);
    CHECK_EQUAL(waitpid(child, &status, WUNTRACED | WNOHANG), 0);  // reported once
    CHECK_EQUAL(kill(child, SIGCONT), 0);
  }
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(WIFEXITED(status), 1);
  CHECK_EQUAL(WEXITSTATUS(status), 7);
  CHECK_EQUAL(waitpid(child, &status, WUNTRACED), -1);
  CHECK_EQUAL(errno, ECHILD);
  return succeed();
}
