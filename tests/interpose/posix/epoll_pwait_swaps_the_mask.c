// SPDX-License-Identifier: Apache-2.0
// epoll_pwait changes the mask only while it waits.
#define _GNU_SOURCE
#include <sys/epoll.h>

#include "../small.h"

static volatile sig_atomic_t caught;
static void note(int signo) { caught = signo; }

int main(void) {
  sigset_t none;
  struct epoll_event got;
  sigemptyset(&none);
  handle(SIGUSR2, note, SA_RESTART);
  block_signal(SIGUSR2);
  const int ep = epoll_create1(0);
  CHECK_EQUAL(raise(SIGUSR2), 0);
  CHECK_EQUAL(epoll_wait(ep, &got, 1, 0), 0);
  CHECK_EQUAL(caught, 0);
  CHECK_EQUAL(epoll_pwait(ep, &got, 1, 20000, &none), -1);
  CHECK_EQUAL(errno, EINTR);
  CHECK_EQUAL(caught, SIGUSR2);
  return succeed();
}
