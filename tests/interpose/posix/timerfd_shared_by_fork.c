// SPDX-License-Identifier: Apache-2.0
// Parent and child share a timerfd: one sets it, the other reads it, and an expiration is read
// once.
#include <fcntl.h>
#include <sys/timerfd.h>

#include "../child.h"

static int fd;

static int sets(int unused) {
  const struct itimerspec v = {{0, 0}, {0, 2 * MS}};
  CHECK_EQUAL(timerfd_settime(fd, 0, &v, NULL), 0);
  return unused;
}

static int reads(int unused) {
  uint64_t count = 0;
  CHECK_EQUAL(read(fd, &count, sizeof count), -1);
  CHECK_EQUAL(errno, EAGAIN);
  return unused;
}

int main(void) {
  uint64_t count = 0;
  fd = timerfd_create(CLOCK_MONOTONIC, 0);
  CHECK(fd >= 0);
  CHECK_EQUAL(status_of(start_process(sets, 0)), 0);
  CHECK_EQUAL(read(fd, &count, sizeof count), sizeof count);
  CHECK_EQUAL(count, 1);
  CHECK_EQUAL(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
  CHECK_EQUAL(status_of(start_process(reads, 0)), 0);
  CHECK_EQUAL(status_of(start_process(sets, 0)), 0);
  sleep_ms(5);
  CHECK_EQUAL(read(fd, &count, sizeof count), sizeof count);
  CHECK_EQUAL(count, 1);
  return succeed();
}
