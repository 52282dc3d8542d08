// SPDX-License-Identifier: Apache-2.0
// pipe2 sets known flags on both ends and refuses others; without free numbers for both ends it
// makes no pipe.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/resource.h>

#include "../small.h"

int main(void) {
  int fds[2] = {-7, -8};
  CHECK_EQUAL(pipe2(fds, O_CREAT), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(fds[0], -7);
  CHECK_EQUAL(fds[1], -8);
  CHECK_EQUAL(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
  for (int i = 0; i < 2; ++i) {
    CHECK_EQUAL(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
    CHECK_EQUAL(fcntl(fds[i], F_GETFL), O_NONBLOCK | (i == 0 ? O_RDONLY : O_WRONLY));
    CHECK_EQUAL(fcntl(fds[i], F_SETFL, 0), 0);
    CHECK_EQUAL(fcntl(fds[i], F_GETFL), i == 0 ? O_RDONLY : O_WRONLY);
  }
  CHECK_EQUAL(close(fds[0]), 0);
  CHECK_EQUAL(close(fds[1]), 0);
  const int next = fds[0];
  struct rlimit old, now;
  CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &old), 0);
  now = old;
  now.rlim_cur = (rlim_t)next + 1;
  CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &now), 0);
  CHECK_EQUAL(pipe(fds), -1);
  CHECK_EQUAL(errno, EMFILE);
  CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &old), 0);
  CHECK_EQUAL(dup(0), next);
  return succeed();
}
