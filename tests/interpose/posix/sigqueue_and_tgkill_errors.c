// SPDX-License-Identifier: Apache-2.0
// Errors of sigqueue and tgkill: numbers of no process, of no thread, of no signal.
#include "../small.h"

int main(void) {
  const union sigval v = {.sival_int = 1};
  CHECK_EQUAL(sigqueue(getpid(), 0, v), 0);
  CHECK_EQUAL(sigqueue(getpid(), 65, v), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(sigqueue(getpid(), -1, v), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(sigqueue(0, SIGUSR1, v), -1);
  CHECK_EQUAL(errno, ESRCH);
  CHECK_EQUAL(sigqueue(-5, SIGUSR1, v), -1);
  CHECK_EQUAL(errno, ESRCH);
  CHECK_EQUAL(sigqueue(0x3ffffffe, 0, v), -1);
  CHECK_EQUAL(errno, ESRCH);
  CHECK_EQUAL(tgkill(getpid(), gettid(), 0), 0);
  CHECK_EQUAL(tgkill(getpid(), gettid(), 65), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(tgkill(getpid(), 0x3ffffffe, 0), -1);
  CHECK_EQUAL(errno, ESRCH);
  CHECK_EQUAL(tgkill(getpid(), 0, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(tgkill(-1, gettid(), 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
