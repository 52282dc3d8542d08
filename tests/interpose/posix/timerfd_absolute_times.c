// SPDX-License-Identifier: Apache-2.0
// TFD_TIMER_ABSTIME: a time in the past makes it readable at once, with all intervals since; for a
// future time the reader waits.
#include <poll.h>
#include <sys/timerfd.h>

#include "../small.h"

static void counts_intervals(void) {
  uint64_t count = 0;
  const int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
  struct pollfd p = {fd, POLLIN, 0};
  struct itimerspec v;
  v.it_interval = timespec_of(3600 * 1000 * MS);
  v.it_value = in_ns(CLOCK_REALTIME, -2 * 3600 * 1000 * MS);
  CHECK_EQUAL(timerfd_settime(fd, TFD_TIMER_ABSTIME, &v, NULL), 0);
  CHECK_EQUAL(poll(&p, 1, 1000), 1);
  CHECK_EQUAL(read(fd, &count, sizeof count), sizeof count);
  CHECK_EQUAL(count, 3);
  CHECK_EQUAL(read(fd, &count, sizeof count), -1);
  CHECK_EQUAL(errno, EAGAIN);
  struct itimerspec now;
  CHECK_EQUAL(timerfd_gettime(fd, &now), 0);
  CHECK_EQUAL(now.it_interval.tv_sec, 3600);
  CHECK(now.it_value.tv_sec > 3500 && now.it_value.tv_sec <= 3600);
  CHECK_EQUAL(close(fd), 0);
}

int main(void) {
  counts_intervals();
  uint64_t count = 0;
  const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};
  for (int i = 0; i < 3; ++i) {
    const int fd = timerfd_create(clocks[i], TFD_NONBLOCK | TFD_CLOEXEC);
    CHECK(fd >= 0);
    struct itimerspec v = {{0, 0}, in_ns(clocks[i], -10 * MS)};
    CHECK_EQUAL(timerfd_settime(fd, TFD_TIMER_ABSTIME, &v, NULL), 0);
    struct pollfd p = {fd, POLLIN, 0};
    CHECK_EQUAL(poll(&p, 1, 1000), 1);
    CHECK_EQUAL(read(fd, &count, sizeof count), sizeof count);
    CHECK_EQUAL(count, 1);
    v = (struct itimerspec){{0, 0}, in_ns(clocks[i], 20 * MS)};
    CHECK_EQUAL(timerfd_settime(fd, TFD_TIMER_ABSTIME, &v, NULL), 0);
    CHECK_EQUAL(poll(&p, 1, 1000), 1);
    CHECK(now_ns(clocks[i]) >= v.it_value.tv_sec * 1000000000LL + v.it_value.tv_nsec);
    CHECK_EQUAL(close(fd), 0);
  }
  return succeed();
}
