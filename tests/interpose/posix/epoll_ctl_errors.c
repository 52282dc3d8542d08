// SPDX-License-Identifier: Apache-2.0
// epoll_ctl's errors: added twice, never added, the epoll itself, a file, a closed descriptor.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/epoll.h>

#include "../small.h"

int main(void) {
  int fds[2];
  struct epoll_event e = {EPOLLIN, {.u32 = 1}};
  const int ep = epoll_create1(0), file = open("/etc/hostname", O_RDONLY | O_CREAT, 0644);
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e), -1);
  CHECK_EQUAL(errno, ENOENT);
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_DEL, fds[0], NULL), -1);
  CHECK_EQUAL(errno, ENOENT);
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e), 0);
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e), -1);
  CHECK_EQUAL(errno, EEXIST);
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, ep, &e), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, file, &e), -1);
  CHECK_EQUAL(errno, EPERM);
  CHECK_EQUAL(epoll_ctl(ep, EPOLL_CTL_ADD, 1000, &e), -1);
  CHECK_EQUAL(errno, EBADF);
  CHECK_EQUAL(epoll_ctl(fds[0], EPOLL_CTL_ADD, fds[1], &e), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(epoll_create(0), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
