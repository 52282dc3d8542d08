// SPDX-License-Identifier: Apache-2.0
// A signalfd returns queued signals with their senders and values, and is readable while there are
// any.
#define _GNU_SOURCE
#include <poll.h>
#include <sys/signalfd.h>

#include "../small.h"

int main(void) {
  struct signalfd_siginfo info[4];
  block_signal(SIGRTMIN);
  const sigset_t set = set_of_signal(SIGRTMIN);
  const int fd = signalfd(-1, &set, SFD_NONBLOCK);
  CHECK_EQUAL(read(fd, info, sizeof info), -1);
  CHECK_EQUAL(errno, EAGAIN);
  for (int i = 0; i < 3; ++i) {
    const union sigval v = {.sival_int = 5 + i};
    CHECK_EQUAL(sigqueue(getpid(), SIGRTMIN, v), 0);
  }
  struct pollfd p = {fd, POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 0), 1);
  CHECK_EQUAL(read(fd, info, 2 * sizeof info[0]), 2 * sizeof info[0]);
  CHECK_EQUAL(info[0].ssi_signo, SIGRTMIN);
  CHECK_EQUAL(info[0].ssi_int, 5);
  CHECK_EQUAL(info[1].ssi_int, 6);
  CHECK_EQUAL(info[1].ssi_pid, getpid());
  CHECK_EQUAL(info[1].ssi_code, SI_QUEUE);
  CHECK_EQUAL(poll(&p, 1, 0), 1);
  CHECK_EQUAL(read(fd, info, sizeof info), sizeof info[0]);
  CHECK_EQUAL(info[0].ssi_int, 7);
  CHECK_EQUAL(poll(&p, 1, 0), 0);
  return succeed();
}
