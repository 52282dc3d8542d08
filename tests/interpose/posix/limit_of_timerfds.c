// SPDX-License-Identifier: Apache-2.0
// says: limit: .*timers
// timerfds are made until the limit; alarm(), which has no error number, still expires, and closing
// one makes room for another.
#include <sys/time.h>
#include <sys/timerfd.h>

#include "../limit.h"

#define MOST 4400

static int fds[MOST];

int main(void) {
  allow_descriptors(MOST + 100);
  int made = 0, refusals = 0;
  while (made < MOST && refusals < 20) {
    fds[made] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (fds[made] >= 0) {
      ++made;
    } else {
      check_refusal(errno, EMFILE, ENFILE, ENOMEM, 0);
      ++refusals;
    }
  }
  CHECK(made > 100);
  block_signal(SIGALRM);
  const struct itimerval soon = {{0, 0}, {0, 1000}};
  CHECK_EQUAL(setitimer(ITIMER_REAL, &soon, NULL), 0);
  const sigset_t set = set_of_signal(SIGALRM);
  CHECK_EQUAL(sigwaitinfo(&set, NULL), SIGALRM);
  CHECK_EQUAL(close(fds[7]), 0);
  fds[7] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  CHECK(fds[7] >= 0);
  const struct itimerspec at_once = {{0, 0}, {0, MS}};
  CHECK_EQUAL(timerfd_settime(fds[7], 0, &at_once, NULL), 0);
  uint64_t expirations = 0;
  CHECK_EQUAL(read(fds[7], &expirations, sizeof expirations), sizeof expirations);
  CHECK_EQUAL(expirations, 1);
  return succeed();
}
