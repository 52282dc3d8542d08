// SPDX-License-Identifier: Apache-2.0
// A stopped process handles other signals when it continues; SIGKILL ends it at once.
#include <sys/wait.h>

#include "../small.h"

static pid_t stopped_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    for (;;) pause();
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, WUNTRACED), child);
  CHECK_EQUAL(WIFSTOPPED(status), 1);
  return child;
}

int main(void) {
  int status;
  pid_t child = stopped_child();
  CHECK_EQUAL(kill(child, SIGTERM), 0);
  sleep_ms(20);
  CHECK_EQUAL(waitpid(child, &status, WNOHANG), 0);
  CHECK_EQUAL(kill(child, SIGCONT), 0);
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(WIFSIGNALED(status), 1);
  CHECK_EQUAL(WTERMSIG(status), SIGTERM);

  child = stopped_child();
  CHECK_EQUAL(kill(child, SIGKILL), 0);
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(WIFSIGNALED(status), 1);
  CHECK_EQUAL(WTERMSIG(status), SIGKILL);
  return succeed();
}
