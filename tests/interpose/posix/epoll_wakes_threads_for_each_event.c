// SPDX-License-Identifier: Apache-2.0
// Threads that wait on one epoll get every event once, if each is one-shot.
#define _GNU_SOURCE
#include <sys/epoll.h>

#include "../small.h"

enum { kCount = 12 };
static int ep, fds[kCount][2];
static void* worker(void* x) {
  long count = 0;
  (void)x;
  for (;;) {
    struct epoll_event got;
    const int n = epoll_wait(ep, &got, 1, 2000);
    if (n == 0) return (void*)count;
    CHECK_EQUAL(n, 1);
    char c;
    CHECK_EQUAL(read(fds[got.data.u32][0], &c, 1), 1);
    if (c == 'q') return (void*)count;
    ++count;
  }
}

int main(void) {
  pthread_t t[3];
  long sum = 0;
  ep = epoll_create1(0);
  for (uint32_t i = 0; i < kCount; ++i) {
    struct epoll_event e = {EPOLLIN | EPOLLONESHOT, {.u32 = i}};
    CHECK_EQUAL(pipe(fds[i]), 0);
    CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, fds[i][0], &e), 0);
  }
  for (int i = 0; i < 3; ++i) t[i] = start(worker, NULL);
  for (int i = 0; i < kCount; ++i) CHECK_EQUAL(write(fds[i][1], i < kCount - 3 ? "x" : "q", 1), 1);
  for (int i = 0; i < 3; ++i) sum += (long)join(t[i]);
  CHECK(sum <= kCount - 3);
  return succeed();
}
