// SPDX-License-Identifier: Apache-2.0
// Real-time signals queue: all values arrive, in the order of sending, the lowest signal first.
#include "../small.h"

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN);
  sigaddset(&set, SIGRTMIN + 1);
  CHECK_EQUAL(sigprocmask(SIG_BLOCK, &set, NULL), 0);
  for (int i = 0; i < 3; ++i) {
    const union sigval high = {.sival_int = 100 + i}, low = {.sival_int = i};
    CHECK_EQUAL(sigqueue(getpid(), SIGRTMIN + 1, high), 0);
    CHECK_EQUAL(sigqueue(getpid(), SIGRTMIN, low), 0);
  }
  for (int i = 0; i < 6; ++i) {
    siginfo_t info;
    CHECK_EQUAL(sigwaitinfo(&set, &info), i < 3 ? SIGRTMIN : SIGRTMIN + 1);
    CHECK_EQUAL(info.si_code, SI_QUEUE);
    CHECK_EQUAL(info.si_pid, getpid());
    CHECK_EQUAL(info.si_uid, getuid());
    CHECK_EQUAL(info.si_value.sival_int, i < 3 ? i : 97 + i);
  }
  const struct timespec now = {0, 0};
  CHECK_EQUAL(sigtimedwait(&set, NULL, &now), -1);
  CHECK_EQUAL(errno, EAGAIN);
  return succeed();
}
