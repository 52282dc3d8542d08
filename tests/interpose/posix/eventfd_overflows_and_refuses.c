// SPDX-License-Identifier: Apache-2.0
// An eventfd returns its whole count or, as a semaphore, one at a time; it is full below its
// maximum value, and reads and writes of other sizes fail with EINVAL.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

static int bits(int fd) {
  struct pollfd p = {fd, POLLIN | POLLOUT, 0};
  poll(&p, 1, 0);
  return p.revents;
}

int main(void) {
  uint64_t v;
  const int e = eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC);
  CHECK_EQUAL(fcntl(e, F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(fcntl(e, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  CHECK_EQUAL(bits(e), POLLIN | POLLOUT);
  CHECK_EQUAL(eventfd_write(e, 4), 0);
  CHECK_EQUAL(read(e, &v, sizeof v), 8);
  CHECK_EQUAL(v, 7);
  CHECK_EQUAL(bits(e), POLLOUT);
  FAILS(read(e, &v, sizeof v), EAGAIN);
  FAILS(read(e, &v, 7), EINVAL);
  FAILS(write(e, &v, 7), EINVAL);
  v = UINT64_MAX;
  FAILS(write(e, &v, sizeof v), EINVAL);
  v = UINT64_MAX - 1;
  CHECK_EQUAL(write(e, &v, sizeof v), 8);
  CHECK_EQUAL(bits(e), POLLIN);
  v = 1;
  FAILS(write(e, &v, sizeof v), EAGAIN);
  v = 0;
  CHECK_EQUAL(write(e, &v, sizeof v), 8);
  char room[16];
  CHECK_EQUAL(read(e, room, sizeof room), 8);
  const int s = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
  for (int i = 0; i < 2; ++i) CHECK(read(s, &v, sizeof v) == 8 && v == 1);
  FAILS(read(s, &v, sizeof v), EAGAIN);
  FAILS(eventfd(0, 12345), EINVAL);
  return succeed();
}
