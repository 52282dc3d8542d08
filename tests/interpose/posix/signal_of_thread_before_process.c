// SPDX-License-Identifier: Apache-2.0
// Signals pending for the thread are taken before those pending for the process, even if the latter
// have lower numbers.
#include "../small.h"

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGUSR2);
  sigaddset(&set, SIGRTMIN);
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
  CHECK_EQUAL(kill(getpid(), SIGUSR1), 0);
  CHECK_EQUAL(pthread_kill(pthread_self(), SIGUSR2), 0);
  CHECK_EQUAL(pthread_kill(pthread_self(), SIGRTMIN), 0);
  CHECK_EQUAL(kill(getpid(), SIGRTMIN), 0);
  siginfo_t info;
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGUSR2);
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGRTMIN);
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGUSR1);
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGRTMIN);
  CHECK_EQUAL(info.si_code, SI_USER);
  const struct timespec now = {0, 0};
  CHECK_EQUAL(sigtimedwait(&set, NULL, &now), -1);
  CHECK_EQUAL(errno, EAGAIN);
  return succeed();
}
