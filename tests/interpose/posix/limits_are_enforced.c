// SPDX-License-Identifier: Apache-2.0
// setrlimit: a soft limit above the hard one fails with EINVAL, limits read back by prlimit, and
// RLIMIT_NOFILE is enforced for every kind of descriptor.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  struct rlimit r = {10, 5}, old;
  FAILS(setrlimit(RLIMIT_NOFILE, &r), EINVAL);
  FAILS(setrlimit(77, &r), EINVAL);
  FAILS(getrlimit(77, &r), EINVAL);
  CHECK_EQUAL(getrlimit(RLIMIT_CORE, &r), 0);
  r.rlim_cur = 0;
  CHECK_EQUAL(setrlimit(RLIMIT_CORE, &r), 0);
  CHECK_EQUAL(prlimit(0, RLIMIT_CORE, NULL, &old), 0);
  CHECK(old.rlim_cur == 0 && old.rlim_max == r.rlim_max);
  CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &r), 0);
  int last = dup(0);
  CHECK_EQUAL(close(last), 0);
  r.rlim_cur = (rlim_t)last;
  CHECK_EQUAL(prlimit(getpid(), RLIMIT_NOFILE, &r, &old), 0);
  CHECK(old.rlim_cur > r.rlim_cur);
  CHECK_EQUAL(sysconf(_SC_OPEN_MAX), last);
  FAILS(open("/dev/null", O_RDONLY), EMFILE);
  FAILS(socket(AF_UNIX, SOCK_STREAM, 0), EMFILE);
  FAILS(socket(AF_INET, SOCK_STREAM, 0), EMFILE);
  FAILS(socket(AF_INET, SOCK_DGRAM, 0), EMFILE);
  FAILS(eventfd(0, 0), EMFILE);
  FAILS(epoll_create1(0), EMFILE);
  FAILS(timerfd_create(CLOCK_MONOTONIC, 0), EMFILE);
  FAILS(dup(0), EMFILE);
  int fds[2];
  FAILS(pipe(fds), EMFILE);
  FAILS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), EMFILE);
  CHECK(fopen("/dev/null", "r") == NULL && errno == EMFILE);
  CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &old), 0);
  CHECK_EQUAL(open("/dev/null", O_RDONLY), last);
  return succeed();
}
