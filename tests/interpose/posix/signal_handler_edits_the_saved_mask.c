// SPDX-License-Identifier: Apache-2.0
// A handler that changes uc_sigmask of its context sets the mask that applies after its return.
#include <ucontext.h>

#include "../small.h"

static void block_other(int signo, siginfo_t* info, void* given) {
  ucontext_t* context = given;
  CHECK_EQUAL(info->si_signo, signo);
  CHECK_EQUAL(sigismember(&context->uc_sigmask, SIGUSR1), 0);
  CHECK_EQUAL(sigismember(&context->uc_sigmask, SIGHUP), 1);
  sigaddset(&context->uc_sigmask, SIGUSR2);
  sigdelset(&context->uc_sigmask, SIGHUP);
}

static int is_blocked(int signo) {
  sigset_t now;
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
  return sigismember(&now, signo);
}

int main(void) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_sigaction = block_other;
  a.sa_flags = SA_SIGINFO;
  CHECK_EQUAL(sigaction(SIGUSR1, &a, NULL), 0);
  block_signal(SIGHUP);
  CHECK_EQUAL(raise(SIGUSR1), 0);
  CHECK_EQUAL(is_blocked(SIGUSR1), 0);
  CHECK_EQUAL(is_blocked(SIGUSR2), 1);
  CHECK_EQUAL(is_blocked(SIGHUP), 0);
  return succeed();
}
