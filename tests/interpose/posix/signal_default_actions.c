// SPDX-License-Identifier: Apache-2.0
// The default action of a signal ends a process with that signal; SIGCHLD and SIGURG have no
// effect.
#define _GNU_SOURCE
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGPIPE, SIGALRM, SIGKILL};
  raise(SIGCHLD);
  raise(SIGURG);
  raise(SIGWINCH);
  raise(SIGCONT);
  for (unsigned i = 0; i < sizeof signals / sizeof *signals; ++i) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
      raise(signals[i]);
      _exit(1);
    }
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    CHECK_EQUAL(WTERMSIG(status), signals[i]);
  }
  return succeed();
}
