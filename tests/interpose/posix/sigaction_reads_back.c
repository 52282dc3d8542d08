// SPDX-License-Identifier: Apache-2.0
// sigaction returns handler, flags and mask, without SIGKILL and SIGSTOP, which cannot be blocked;
// libc reserves two signals.
#include "../small.h"

static void note(int signo, siginfo_t* info, void* context) {
  (void)signo;
  (void)info;
  (void)context;
}

int main(void) {
  struct sigaction a, old;
  memset(&a, 0, sizeof a);
  a.sa_sigaction = note;
  a.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER | SA_ONSTACK;
  sigaddset(&a.sa_mask, SIGUSR2);
  sigaddset(&a.sa_mask, SIGKILL);
  sigaddset(&a.sa_mask, SIGSTOP);
  sigaddset(&a.sa_mask, SIGRTMAX);
  CHECK_EQUAL(sigaction(SIGUSR1, &a, NULL), 0);
  CHECK_EQUAL(sigaction(SIGUSR1, NULL, &old), 0);
  CHECK(old.sa_sigaction == note);
  const int all = SA_SIGINFO | SA_RESTART | SA_NODEFER | SA_ONSTACK | (int)SA_RESETHAND |
                  SA_NOCLDSTOP | SA_NOCLDWAIT;
  CHECK_EQUAL(old.sa_flags & all, a.sa_flags);
  CHECK_EQUAL(sigismember(&old.sa_mask, SIGUSR2), 1);
  CHECK_EQUAL(sigismember(&old.sa_mask, SIGRTMAX), 1);
  CHECK_EQUAL(sigismember(&old.sa_mask, SIGUSR1), 0);
  CHECK_EQUAL(sigismember(&old.sa_mask, SIGKILL), 0);
  CHECK_EQUAL(sigismember(&old.sa_mask, SIGSTOP), 0);
  CHECK_EQUAL(sigaction(32, &a, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(sigaction(33, NULL, &old), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(pthread_kill(pthread_self(), 32), EINVAL);
  CHECK_EQUAL(sigaction(SIGKILL, NULL, &old), 0);
  CHECK(old.sa_handler == SIG_DFL);
  return succeed();
}
