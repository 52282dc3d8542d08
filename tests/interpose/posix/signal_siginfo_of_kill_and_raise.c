// SPDX-License-Identifier: Apache-2.0
// A handler with SA_SIGINFO gets the sender of the signal and how it was sent.
#include "../small.h"

static siginfo_t got;
static void note(int signo, siginfo_t* info, void* context) {
  (void)signo;
  CHECK(context != NULL);
  got = *info;
}

int main(void) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_sigaction = note;
  a.sa_flags = SA_SIGINFO;
  CHECK_EQUAL(sigaction(SIGUSR1, &a, NULL), 0);
  CHECK_EQUAL(kill(getpid(), SIGUSR1), 0);
  CHECK_EQUAL(got.si_signo, SIGUSR1);
  CHECK_EQUAL(got.si_code, SI_USER);
  CHECK_EQUAL(got.si_pid, getpid());
  CHECK_EQUAL(raise(SIGUSR1), 0);
  CHECK_EQUAL(got.si_code, SI_TKILL);
  CHECK_EQUAL(pthread_kill(pthread_self(), SIGUSR1), 0);
  CHECK_EQUAL(got.si_code, SI_TKILL);
  const union sigval v = {.sival_ptr = &got};
  CHECK_EQUAL(sigqueue(getpid(), SIGUSR1, v), 0);
  CHECK_EQUAL(got.si_code, SI_QUEUE);
  CHECK(got.si_value.sival_ptr == &got);
  CHECK_EQUAL(pthread_sigqueue(pthread_self(), SIGUSR1, v), 0);
  CHECK_EQUAL(got.si_code, SI_QUEUE);
  return succeed();
}
