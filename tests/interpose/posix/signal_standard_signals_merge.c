// SPDX-License-Identifier: Apache-2.0
// A standard signal is pending at most once; the first sender's value is kept.
#include "../small.h"

int main(void) {
  block_signal(SIGUSR1);
  const sigset_t set = set_of_signal(SIGUSR1);
  const union sigval one = {.sival_int = 1}, two = {.sival_int = 2};
  CHECK_EQUAL(sigqueue(getpid(), SIGUSR1, one), 0);
  CHECK_EQUAL(sigqueue(getpid(), SIGUSR1, two), 0);
  siginfo_t info;
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGUSR1);
  CHECK_EQUAL(info.si_value.sival_int, 1);
  const struct timespec now = {0, 0};
  CHECK_EQUAL(sigtimedwait(&set, &info, &now), -1);
  CHECK_EQUAL(errno, EAGAIN);
  return succeed();
}
