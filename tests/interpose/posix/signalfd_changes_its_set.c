// SPDX-License-Identifier: Apache-2.0
// signalfd with a descriptor changes its set; short reads and bad arguments are refused.
#include <poll.h>
#include <sys/signalfd.h>

#include "../small.h"

int main(void) {
  struct signalfd_siginfo info;
  sigset_t both = set_of_signal(SIGUSR1);
  sigaddset(&both, SIGUSR2);
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, &both, NULL), 0);
  const sigset_t one = set_of_signal(SIGUSR1), two = set_of_signal(SIGUSR2);
  const int fd = signalfd(-1, &one, SFD_NONBLOCK);
  CHECK(fd >= 0);
  CHECK_EQUAL(kill(getpid(), SIGUSR2), 0);
  CHECK_EQUAL(read(fd, &info, sizeof info), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(read(fd, &info, sizeof info - 1), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(signalfd(fd, &two, 0), fd);
  struct pollfd p = {fd, POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 0), 1);
  CHECK_EQUAL(read(fd, &info, sizeof info), sizeof info);
  CHECK_EQUAL(info.ssi_signo, SIGUSR2);
  CHECK_EQUAL(info.ssi_code, SI_USER);
  CHECK_EQUAL(info.ssi_uid, getuid());
  CHECK_EQUAL(signalfd(-1, &two, 1), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(signalfd(1000, &two, 0), -1);
  CHECK_EQUAL(errno, EBADF);
  int fds[2];
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(signalfd(fds[0], &two, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(write(fd, &info, sizeof info), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
