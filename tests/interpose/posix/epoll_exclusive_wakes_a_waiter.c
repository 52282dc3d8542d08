// SPDX-License-Identifier: Apache-2.0
// Two epolls share a descriptor exclusively: each byte wakes at least one of their threads.
#define _GNU_SOURCE
#include <sys/epoll.h>

#include "../small.h"

static int fds[2];
static void* worker(void* x) {
  const int ep = epoll_create1(0);
  struct epoll_event e = {EPOLLIN | EPOLLEXCLUSIVE, {.u32 = 1}}, got;
  long count = 0;
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e), 0);
  (void)x;
  for (;;) {
    char c;
    CHECK_EQUAL(epoll_wait(ep, &got, 1, -1), 1);
    const ssize_t n = read(fds[0], &c, 1);
    if (n == 0) return (void*)count;
    if (n == 1) ++count;
    if (n < 0) CHECK_EQUAL(errno, EAGAIN);
  }
}

int main(void) {
  CHECK_EQUAL(pipe2(fds, 04000), 0);
  const pthread_t a = start(worker, NULL), b = start(worker, NULL);
  for (int i = 0; i < 10; ++i) {
    sleep_ms(2);
    CHECK_EQUAL(write(fds[1], "x", 1), 1);
  }
  close(fds[1]);
  CHECK_EQUAL((long)join(a) + (long)join(b), 10);
  return succeed();
}
