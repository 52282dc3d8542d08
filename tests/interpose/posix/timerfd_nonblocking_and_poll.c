// SPDX-License-Identifier: Apache-2.0
// A timerfd is readable when it has expired; before, a nonblocking read returns EAGAIN.
#define _GNU_SOURCE
#include <poll.h>
#include <sys/timerfd.h>

#include "../small.h"

int main(void) {
  uint64_t count = 0;
  const int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  const struct itimerspec v = {{0, 0}, in_ns(CLOCK_REALTIME, 10 * MS)};
  CHECK_EQUAL(timerfd_settime(fd, TFD_TIMER_ABSTIME, &v, NULL), 0);
  CHECK_EQUAL(read(fd, &count, sizeof count), -1);
  CHECK_EQUAL(errno, EAGAIN);
  struct pollfd p = {fd, POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 0), 0);
  CHECK_EQUAL(poll(&p, 1, 20000), 1);
  CHECK_EQUAL(p.revents, POLLIN);
  CHECK_EQUAL(read(fd, &count, sizeof count), sizeof count);
  CHECK_EQUAL(count, 1);
  return succeed();
}
