// SPDX-License-Identifier: Apache-2.0
// RLIMIT_SIGPENDING limits the queue: sigqueue fails with EAGAIN, kill does not, and there is room
// again when the signals have been taken.
#include <sys/resource.h>

#include "../small.h"

int main(void) {
  const union sigval v = {.sival_int = 3};
  const struct rlimit none = {0, 0}, some = {100, 100};
  block_signal(SIGRTMIN);
  const sigset_t set = set_of_signal(SIGRTMIN);
  CHECK_EQUAL(setrlimit(RLIMIT_SIGPENDING, &some), 0);
  CHECK_EQUAL(sigqueue(getpid(), SIGRTMIN, v), 0);
  CHECK_EQUAL(setrlimit(RLIMIT_SIGPENDING, &none), 0);
  CHECK_EQUAL(sigqueue(getpid(), SIGRTMIN, v), -1);
  CHECK_EQUAL(errno, EAGAIN);
  siginfo_t info;
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGRTMIN);
  CHECK_EQUAL(info.si_value.sival_int, 3);
  CHECK_EQUAL(kill(getpid(), SIGRTMIN), 0);
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGRTMIN);
  CHECK_EQUAL(info.si_code, SI_USER);
  const struct timespec now = {0, 0};
  CHECK_EQUAL(sigtimedwait(&set, NULL, &now), -1);
  return succeed();
}
