// SPDX-License-Identifier: Apache-2.0
// SIGTSTP, SIGTTIN and SIGTTOU can be caught and ignored, SIGSTOP cannot; each stops by default.
#include <sys/wait.h>

#include "../small.h"

static volatile sig_atomic_t caught;
static void on_signal(int signo) { caught = signo; }

int main(void) {
  static const int kStops[] = {SIGTSTP, SIGTTIN, SIGTTOU};
  for (int i = 0; i < 3; ++i) {
    handle(kStops[i], on_signal, 0);
    raise(kStops[i]);
    CHECK_EQUAL(caught, kStops[i]);
    signal(kStops[i], SIG_IGN);
    caught = 0;
    raise(kStops[i]);
    CHECK_EQUAL(caught, 0);
    signal(kStops[i], SIG_DFL);
    const pid_t child = fork();
    if (child == 0) {
      // A new group, whose parent is in another group: not orphaned.
      if (setpgid(0, 0) != 0) _exit(2);
      raise(kStops[i]);
      _exit(0);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, WUNTRACED), child);
    CHECK_EQUAL(WIFSTOPPED(status), 1);
    CHECK_EQUAL(WSTOPSIG(status), kStops[i]);
    CHECK_EQUAL(kill(child, SIGCONT), 0);
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
  }
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = SIG_IGN;
  CHECK_EQUAL(sigaction(SIGSTOP, &a, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK(signal(SIGSTOP, on_signal) == SIG_ERR);
  block_signal(SIGSTOP);
  sigset_t now;
  CHECK_EQUAL(sigprocmask(SIG_BLOCK, NULL, &now), 0);
  CHECK_EQUAL(sigismember(&now, SIGSTOP), 0);
  return succeed();
}
