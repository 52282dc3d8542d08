// SPDX-License-Identifier: Apache-2.0
// A signalfd also returns signals pending for the reading thread, as sent by raise and
// pthread_kill.
#include <poll.h>
#include <sys/signalfd.h>

#include "../small.h"

static int fd;

static void* has_none(void* unused) {
  struct pollfd p = {fd, POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 0), 0);
  struct signalfd_siginfo info;
  CHECK_EQUAL(read(fd, &info, sizeof info), -1);
  CHECK_EQUAL(errno, EAGAIN);
  return unused;
}

int main(void) {
  struct signalfd_siginfo info;
  block_signal(SIGUSR1);
  const sigset_t set = set_of_signal(SIGUSR1);
  fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  CHECK(fd >= 0);
  raise(SIGUSR1);
  elsewhere(has_none, NULL);
  CHECK_EQUAL(read(fd, &info, sizeof info), sizeof info);
  CHECK_EQUAL(info.ssi_signo, SIGUSR1);
  CHECK_EQUAL(info.ssi_code, SI_TKILL);
  CHECK_EQUAL(info.ssi_pid, getpid());
  CHECK_EQUAL(pthread_kill(pthread_self(), SIGUSR1), 0);
  struct pollfd p = {fd, POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 0), 1);
  CHECK_EQUAL(p.revents, POLLIN);
  CHECK_EQUAL(read(fd, &info, sizeof info), sizeof info);
  CHECK_EQUAL(poll(&p, 1, 0), 0);
  return succeed();
}
