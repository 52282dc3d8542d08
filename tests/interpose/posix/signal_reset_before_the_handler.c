// SPDX-License-Identifier: Apache-2.0
// SA_RESETHAND: the handler sees the default action, the signal stays blocked while it runs unless
// SA_NODEFER is set, and the mask of the action is kept.
#include "../child.h"

static volatile sig_atomic_t calls, blocked;
static void look(int signo) {
  struct sigaction now;
  sigset_t mask;
  ++calls;
  CHECK_EQUAL(sigaction(signo, NULL, &now), 0);
  CHECK(now.sa_handler == SIG_DFL);
  CHECK_EQUAL(sigismember(&now.sa_mask, SIGHUP), 1);
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
  CHECK_EQUAL(sigismember(&mask, SIGHUP), 1);
  blocked = sigismember(&mask, signo);
}

static void act(int flags) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = look;
  a.sa_flags = flags;
  sigaddset(&a.sa_mask, SIGHUP);
  CHECK_EQUAL(sigaction(SIGUSR1, &a, NULL), 0);
}

static int dies(int unused) {
  raise(SIGUSR1);
  return unused;
}

int main(void) {
  act((int)SA_RESETHAND);
  raise(SIGUSR1);
  CHECK_EQUAL(calls, 1);
  CHECK_EQUAL(blocked, 1);
  const int status = status_of(start_process(dies, 0));
  CHECK(WIFSIGNALED(status));
  CHECK_EQUAL(WTERMSIG(status), SIGUSR1);
  act((int)SA_RESETHAND | SA_NODEFER);
  raise(SIGUSR1);
  CHECK_EQUAL(calls, 2);
  CHECK_EQUAL(blocked, 0);
  return succeed();
}
