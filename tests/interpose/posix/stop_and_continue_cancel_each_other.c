// SPDX-License-Identifier: Apache-2.0
// SIGCONT discards a pending SIGTSTP, and vice versa; SIGCONT continues the process even if it is
// blocked or ignored, and its handler runs.
#include <sys/wait.h>

#include "../small.h"

static volatile sig_atomic_t went_on;
static void on_continue(int signo) { went_on += signo == SIGCONT; }

static int is_pending(int signo) {
  sigset_t set;
  CHECK_EQUAL(sigpending(&set), 0);
  return sigismember(&set, signo);
}

static int status_after_stop(pid_t child) {
  int status;
  CHECK_EQUAL(waitpid(child, &status, WUNTRACED), child);
  CHECK_EQUAL(WIFSTOPPED(status), 1);
  CHECK_EQUAL(kill(child, SIGCONT), 0);
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(WIFEXITED(status), 1);
  return WEXITSTATUS(status);
}

int main(void) {
  block_signal(SIGTSTP);
  block_signal(SIGTTOU);
  block_signal(SIGCONT);
  handle(SIGCONT, on_continue, 0);
  raise(SIGTSTP);
  kill(getpid(), SIGTTOU);
  CHECK_EQUAL(is_pending(SIGTSTP), 1);
  CHECK_EQUAL(is_pending(SIGTTOU), 1);
  raise(SIGCONT);
  CHECK_EQUAL(is_pending(SIGTSTP), 0);
  CHECK_EQUAL(is_pending(SIGTTOU), 0);
  CHECK_EQUAL(is_pending(SIGCONT), 1);
  raise(SIGTSTP);
  CHECK_EQUAL(is_pending(SIGCONT), 0);
  CHECK_EQUAL(is_pending(SIGTSTP), 1);
  raise(SIGCONT);
  CHECK_EQUAL(went_on, 0);
  unblock_signal(SIGCONT);
  CHECK_EQUAL(went_on, 1);
  unblock_signal(SIGTSTP);

  pid_t child = fork();
  if (child == 0) {
    went_on = 0;
    block_signal(SIGCONT);
    raise(SIGSTOP);
    if (!is_pending(SIGCONT) || went_on != 0) _exit(2);
    unblock_signal(SIGCONT);
    _exit(went_on == 1 ? 0 : 3);
  }
  CHECK_EQUAL(status_after_stop(child), 0);
  child = fork();
  if (child == 0) {
    signal(SIGCONT, SIG_IGN);
    raise(SIGSTOP);
    _exit(4);
  }
  CHECK_EQUAL(status_after_stop(child), 4);
  return succeed();
}
