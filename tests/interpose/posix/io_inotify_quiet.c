// SPDX-License-Identifier: Apache-2.0
// inotify: descriptors and watches as everywhere; what Crane does not report is not asked for here.
#include <fcntl.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/inotify.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  const int null = open("/dev/null", O_RDONLY);
  FAILS(inotify_init1(-1), EINVAL);
  const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  CHECK(fd >= 0);
  CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
  const int one = inotify_add_watch(fd, "/", IN_CREATE),
            two = inotify_add_watch(fd, "/dev", IN_CREATE);
  CHECK(one > 0 && two > 0 && one != two);
  FAILS(inotify_add_watch(fd, "/not/there", IN_CREATE), ENOENT);
  FAILS(inotify_add_watch(fd, "/", 0), EINVAL);
  FAILS(inotify_add_watch(-1, "/", IN_CREATE), EBADF);
  FAILS(inotify_add_watch(null, "/", IN_CREATE), EINVAL);
  FAILS(inotify_rm_watch(null, one), EINVAL);
  char room[4096];
  FAILS(read(fd, room, sizeof room), EAGAIN);
  struct epoll_event event = {EPOLLIN, {.fd = fd}};
  const int e = epoll_create1(0);
  CHECK(epoll_ctl(e, EPOLL_CTL_ADD, fd, &event) == 0);
  CHECK_EQUAL(epoll_wait(e, &event, 1, 10), 0);
  CHECK(inotify_rm_watch(fd, two) == 0);
  close(e);
  CHECK(close(fd) == 0);
  return succeed();
}
