// SPDX-License-Identifier: Apache-2.0
// With room for one event, ready descriptors take turns: none is reported twice before the others.
#define _GNU_SOURCE
#include <sys/epoll.h>

#include "../small.h"

int main(void) {
  enum { kCount = 4 };
  int fds[kCount][2], seen[kCount] = {0};
  const int ep = epoll_create1(0);
  struct epoll_event got, all[8];
  for (int i = 0; i < kCount; ++i) {
    struct epoll_event e = {EPOLLIN, {.u32 = (uint32_t)i}};
    CHECK_EQUAL(pipe(fds[i]), 0);
    CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, fds[i][0], &e), 0);
    CHECK_EQUAL(write(fds[i][1], "x", 1), 1);
  }
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < kCount; ++i) {
      CHECK_EQUAL(epoll_wait(ep, &got, 1, -1), 1);
      CHECK_EQUAL(++seen[got.data.u32], round);
    }
  }
  CHECK_EQUAL(epoll_wait(ep, all, 8, -1), kCount);
  CHECK_EQUAL(epoll_wait(ep, all, 0, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
