// SPDX-License-Identifier: Apache-2.0
// A timerfd's read returns the number of expirations since the last read; it blocks if there is
// none.
#define _GNU_SOURCE
#include <sys/timerfd.h>

#include "../small.h"

int main(void) {
  uint64_t count = 0;
  const int fd = timerfd_create(CLOCK_MONOTONIC, 0);
  const struct itimerspec v = {{0, 4 * MS}, {0, 4 * MS}};
  CHECK_EQUAL(timerfd_settime(fd, 0, &v, NULL), 0);
  sleep_ms(25);
  CHECK_EQUAL(read(fd, &count, sizeof count), sizeof count);
  CHECK(count >= 6);
  CHECK_EQUAL(read(fd, &count, sizeof count), sizeof count);
  CHECK(count >= 1);
  return succeed();
}
