// SPDX-License-Identifier: Apache-2.0
// A handler ends sigwaitinfo and sigtimedwait with EINTR, also with SA_RESTART.
#include "../small.h"

int main(void) {
  struct Interruptions rings;
  block_signal(SIGUSR2);
  const sigset_t set = set_of_signal(SIGUSR2);
  begin_interruptions(&rings, SA_RESTART);
  siginfo_t info;
  const struct timespec long_time = {60, 0};
  CHECK_EQUAL(sigtimedwait(&set, &info, &long_time), -1);
  CHECK_EQUAL(errno, EINTR);
  CHECK_EQUAL(sigwaitinfo(&set, &info), -1);
  CHECK_EQUAL(errno, EINTR);
  end_interruptions(&rings);
  return succeed();
}
