// SPDX-License-Identifier: Apache-2.0
// ppoll and pselect change the mask only while they wait: a signal sent before interrupts them.
#define _GNU_SOURCE
#include <poll.h>
#include <sys/select.h>

#include "../small.h"

static volatile sig_atomic_t caught;
static void note(int signo) {
  (void)signo;
  ++caught;
}

int main(void) {
  sigset_t none, now;
  sigemptyset(&none);
  handle(SIGUSR1, note, 0);
  block_signal(SIGUSR1);
  const struct timespec long_time = {20, 0};
  for (int i = 0; i < 2; ++i) {
    CHECK_EQUAL(raise(SIGUSR1), 0);
    CHECK_EQUAL(caught, i);
    CHECK_EQUAL(i == 0 ? ppoll(NULL, 0, &long_time, &none)
                       : pselect(0, NULL, NULL, NULL, &long_time, &none),
                -1);
    CHECK_EQUAL(errno, EINTR);
    CHECK_EQUAL(caught, i + 1);
    CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
    CHECK_EQUAL(sigismember(&now, SIGUSR1), 1);
  }
  return succeed();
}
