// SPDX-License-Identifier: Apache-2.0
// sigtimedwait refuses invalid times, even with a signal pending; with a zero time it takes a
// pending signal.
#include "../small.h"

static void refuses(long seconds, long ns) {
  const sigset_t set = set_of_signal(SIGUSR1);
  const struct timespec t = {seconds, ns};
  CHECK_EQUAL(sigtimedwait(&set, NULL, &t), -1);
  CHECK_EQUAL(errno, EINVAL);
}

int main(void) {
  block_signal(SIGUSR1);
  refuses(0, 1000000000);
  refuses(0, -1);
  refuses(-1, 0);
  raise(SIGUSR1);
  refuses(-1, 0);
  const struct timespec none = {0, 0}, short_time = {0, MS};
  const sigset_t set = set_of_signal(SIGUSR1);
  CHECK_EQUAL(sigtimedwait(&set, NULL, &none), SIGUSR1);
  CHECK_EQUAL(sigtimedwait(&set, NULL, &none), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(sigtimedwait(&set, NULL, &short_time), -1);
  CHECK_EQUAL(errno, EAGAIN);
  sigset_t nobody;
  sigemptyset(&nobody);
  CHECK_EQUAL(sigtimedwait(&nobody, NULL, &short_time), -1);
  CHECK_EQUAL(errno, EAGAIN);
  return succeed();
}
