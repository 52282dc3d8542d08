// SPDX-License-Identifier: Apache-2.0
// says: limit: .*pending signals
// Signals are queued until the limit (EAGAIN); kill still succeeds. Queued signals arrive in their
// order, and then there is room again.
#include "../limit.h"

#define MOST 5000

int main(void) {
  block_signal(SIGRTMIN);
  block_signal(SIGUSR1);
  const sigset_t set = set_of_signal(SIGRTMIN), one = set_of_signal(SIGUSR1);
  int queued = 0, refusals = 0;
  while (queued < MOST && refusals < 20) {
    const union sigval v = {.sival_int = queued};
    if (sigqueue(getpid(), SIGRTMIN, v) == 0) {
      ++queued;
    } else {
      check_refusal(errno, EAGAIN, 0);
      ++refusals;
    }
  }
  CHECK(queued > 100);
  CHECK_EQUAL(kill(getpid(), SIGUSR1), 0);
  CHECK_EQUAL(sigwaitinfo(&one, NULL), SIGUSR1);
  siginfo_t info;
  for (int i = 0; i < queued; ++i) {
    CHECK_EQUAL(sigwaitinfo(&set, &info), SIGRTMIN);
    CHECK_EQUAL(info.si_value.sival_int, i);
  }
  const struct timespec now = {0, 0};
  CHECK_EQUAL(sigtimedwait(&set, &info, &now), -1);
  const union sigval last = {.sival_int = 77};
  CHECK_EQUAL(sigqueue(getpid(), SIGRTMIN, last), 0);
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGRTMIN);
  CHECK_EQUAL(info.si_value.sival_int, 77);
  return succeed();
}
