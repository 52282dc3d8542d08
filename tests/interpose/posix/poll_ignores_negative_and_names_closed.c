// SPDX-License-Identifier: Apache-2.0
// poll skips negative descriptors and reports POLLNVAL for closed ones.
#define _GNU_SOURCE
#include <poll.h>

#include "../small.h"

int main(void) {
  int fds[2];
  CHECK_EQUAL(pipe(fds), 0);
  close(fds[1]);
  struct pollfd p[3] = {{-1, POLLIN, 77}, {fds[1], POLLIN, 0}, {fds[0], POLLIN, 0}};
  CHECK_EQUAL(poll(p, 3, -1), 2);
  CHECK_EQUAL(p[0].revents, 0);
  CHECK_EQUAL(p[1].revents, POLLNVAL);
  CHECK_EQUAL(p[2].revents, POLLHUP);
  CHECK_EQUAL(poll(NULL, 0, 0), 0);
  return succeed();
}
