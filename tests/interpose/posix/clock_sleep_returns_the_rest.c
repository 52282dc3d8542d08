// SPDX-License-Identifier: Apache-2.0
// A sleep interrupted by a handler returns the remaining seconds.
#include "../small.h"

static void nothing(int signo) { (void)signo; }

int main(void) {
  handle(SIGALRM, nothing, 0);
  ualarm(5000, 0);
  const unsigned left = sleep(100);
  CHECK(left == 99 || left == 100);
  ualarm(5000, 0);
  CHECK_EQUAL(usleep(30000000), -1);
  CHECK_EQUAL(errno, EINTR);
  return succeed();
}
