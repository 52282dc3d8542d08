// SPDX-License-Identifier: Apache-2.0
// sigwaitinfo reports how a signal was sent: libc returns SI_USER also for signals to a thread.
#include "../small.h"

static siginfo_t take(void) {
  const sigset_t set = set_of_signal(SIGUSR1);
  siginfo_t info;
  memset(&info, 0x55, sizeof info);
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGUSR1);
  CHECK_EQUAL(info.si_signo, SIGUSR1);
  CHECK_EQUAL(info.si_errno, 0);
  CHECK_EQUAL(info.si_pid, getpid());
  CHECK_EQUAL(info.si_uid, getuid());
  return info;
}

int main(void) {
  block_signal(SIGUSR1);
  CHECK_EQUAL(kill(getpid(), SIGUSR1), 0);
  CHECK_EQUAL(take().si_code, SI_USER);
  const union sigval v = {.sival_int = 77};
  CHECK_EQUAL(sigqueue(getpid(), SIGUSR1, v), 0);
  const siginfo_t queued = take();
  CHECK_EQUAL(queued.si_code, SI_QUEUE);
  CHECK_EQUAL(queued.si_value.sival_int, 77);
  CHECK_EQUAL(pthread_sigqueue(pthread_self(), SIGUSR1, v), 0);
  CHECK_EQUAL(take().si_code, SI_QUEUE);
  CHECK_EQUAL(pthread_kill(pthread_self(), SIGUSR1), 0);
  CHECK_EQUAL(take().si_code, SI_USER);
  CHECK_EQUAL(raise(SIGUSR1), 0);
  CHECK_EQUAL(take().si_code, SI_USER);
  return succeed();
}
