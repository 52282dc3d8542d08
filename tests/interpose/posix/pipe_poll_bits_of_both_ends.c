// SPDX-License-Identifier: Apache-2.0
// poll's bits for a pipe's ends: the normal-data bits as well, never the other direction, data
// together with the hang-up, and the hang-up also if no event was requested.
#include <poll.h>

#include "../small.h"

static int bits(int fd, short events) {
  struct pollfd p = {fd, events, 0};
  const int n = poll(&p, 1, 0);
  CHECK_EQUAL(n, p.revents != 0);
  return p.revents;
}

int main(void) {
  int fds[2];
  const short all = POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM | POLLPRI | POLLRDBAND | POLLWRBAND;
  char b[8];
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(bits(fds[0], all), 0);
  CHECK_EQUAL(bits(fds[1], all), POLLOUT | POLLWRNORM);
  CHECK_EQUAL(bits(fds[1], POLLIN), 0);
  CHECK_EQUAL(write(fds[1], "ab", 2), 2);
  CHECK_EQUAL(bits(fds[0], all), POLLIN | POLLRDNORM);
  CHECK_EQUAL(bits(fds[0], POLLRDNORM), POLLRDNORM);
  CHECK_EQUAL(bits(fds[0], POLLPRI), 0);
  CHECK_EQUAL(close(fds[1]), 0);
  CHECK_EQUAL(bits(fds[0], all), POLLIN | POLLRDNORM | POLLHUP);
  CHECK_EQUAL(bits(fds[0], 0), POLLHUP);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 2);
  CHECK_EQUAL(bits(fds[0], all), POLLHUP);
  CHECK_EQUAL(close(fds[0]), 0);
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(close(fds[0]), 0);
  CHECK_EQUAL(bits(fds[1], all), POLLOUT | POLLWRNORM | POLLERR);
  CHECK_EQUAL(bits(fds[1], 0), POLLERR);
  return succeed();
}
