// SPDX-License-Identifier: Apache-2.0
// sigtimedwait returns EAGAIN after its time, and EINTR for a handled signal outside the set.
#include "../small.h"

static void nothing(int signo) { (void)signo; }

int main(void) {
  block_signal(SIGUSR1);
  const sigset_t set = set_of_signal(SIGUSR1);
  const struct timespec short_time = {0, 10 * MS}, bad = {0, -1}, long_time = {20, 0};
  const long long begun = now_ns(CLOCK_MONOTONIC);
  CHECK_EQUAL(sigtimedwait(&set, NULL, &short_time), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK(now_ns(CLOCK_MONOTONIC) - begun >= 10 * MS);
  CHECK_EQUAL(sigtimedwait(&set, NULL, &bad), -1);
  CHECK_EQUAL(errno, EINVAL);
  handle(SIGALRM, nothing, 0);
  ualarm(5000, 0);
  CHECK_EQUAL(sigtimedwait(&set, NULL, &long_time), -1);
  CHECK_EQUAL(errno, EINTR);
  return succeed();
}
