// SPDX-License-Identifier: Apache-2.0
// epoll_wait and epoll_pwait2: no room for events fails with EINVAL, no epoll EINVAL or EBADF; a
// zero timeout polls, a short one ends, a bad one fails with EINVAL.
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  struct epoll_event v, w = {EPOLLIN | EPOLLOUT, {.u64 = 5}};
  const int e = epoll_create(1), n = eventfd(1, 0);
  FAILS(epoll_wait(e, &v, 0, 0), EINVAL);
  volatile int negative = -1;
  FAILS(epoll_wait(e, &v, negative, 0), EINVAL);
  FAILS(epoll_wait(n, &v, 1, 0), EINVAL);
  FAILS(epoll_wait(-1, &v, 1, 0), EBADF);
  FAILS(epoll_create1(12345), EINVAL);
  FAILS(epoll_ctl(e, 77, n, &w), EINVAL);
  struct timespec t = {0, 5 * MS};
  const long long before = now_ns(CLOCK_MONOTONIC);
  CHECK_EQUAL(epoll_pwait2(e, &v, 1, &t, NULL), 0);
  CHECK_EQUAL(epoll_wait(e, &v, 1, 5), 0);
  CHECK(now_ns(CLOCK_MONOTONIC) - before >= 10 * MS);
  t = (struct timespec){0, 1000000000};
  FAILS(epoll_pwait2(e, &v, 1, &t, NULL), EINVAL);
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_ADD, n, &w), 0);
  CHECK_EQUAL(epoll_wait(e, &v, 1, -1), 1);
  CHECK(v.data.u64 == 5 && v.events == (EPOLLIN | EPOLLOUT));
  CHECK_EQUAL(epoll_pwait2(e, &v, 1, NULL, NULL), 1);
  w.events = 0;
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_MOD, n, &w), 0);
  CHECK_EQUAL(epoll_wait(e, &v, 1, 0), 0);
  char b;
  FAILS(read(e, &b, 1), EINVAL);
  FAILS(write(e, &b, 1), EINVAL);
  return succeed();
}
