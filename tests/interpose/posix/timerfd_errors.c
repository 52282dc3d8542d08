// SPDX-License-Identifier: Apache-2.0
// timerfd_*: bad clocks, flags, times and descriptors, and reads that are too short.
#include <sys/timerfd.h>

#include "../small.h"

int main(void) {
  uint64_t count = 0;
  CHECK_EQUAL(timerfd_create(99, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(timerfd_create(CLOCK_MONOTONIC, 1), -1);
  CHECK_EQUAL(errno, EINVAL);
  const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  const struct itimerspec v = {{5, 0}, {100, 0}}, bad = {{0, 0}, {0, 1000000000}};
  const struct itimerspec negative = {{-1, 0}, {1, 0}}, zero = {{7, 0}, {0, 0}};
  struct itimerspec now;
  CHECK_EQUAL(timerfd_settime(fd, 0, &bad, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(timerfd_settime(fd, 0, &negative, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(timerfd_settime(fd, 0x100, &v, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(timerfd_settime(1000, 0, &v, NULL), -1);
  CHECK_EQUAL(errno, EBADF);
  int fds[2];
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(timerfd_settime(fds[0], 0, &v, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(timerfd_gettime(fds[0], &now), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(timerfd_settime(fd, 0, &v, NULL), 0);
  CHECK_EQUAL(read(fd, &count, 7), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(write(fd, &count, 8), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(timerfd_settime(fd, 0, &zero, &now), 0);
  CHECK_EQUAL(now.it_interval.tv_sec, 5);
  CHECK(now.it_value.tv_sec > 90 && now.it_value.tv_sec <= 100);
  CHECK_EQUAL(timerfd_gettime(fd, &now), 0);
  CHECK_EQUAL(now.it_value.tv_sec, 0);
  CHECK_EQUAL(now.it_interval.tv_sec, 7);
  return succeed();
}
