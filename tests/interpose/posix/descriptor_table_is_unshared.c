// SPDX-License-Identifier: Apache-2.0
// close_range with CLOSE_RANGE_UNSHARE affects only the process. O_NONBLOCK set by a child on a
// shared pipe end affects both.
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  int fds[2];
  char b;
  CHECK_EQUAL(pipe(fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0) _exit(1);
    if (close_range(3, UINT_MAX, CLOSE_RANGE_UNSHARE) != 0) _exit(2);
    _exit(fcntl(fds[0], F_GETFD) == -1 && errno == EBADF ? 42 : 3);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 42 << 8);
  CHECK_EQUAL(fcntl(fds[0], F_GETFL), O_RDONLY | O_NONBLOCK);
  CHECK_EQUAL(fcntl(fds[1], F_GETFL), O_WRONLY);
  CHECK_EQUAL(read(fds[0], &b, 1), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(write(fds[1], "x", 1), 1);
  CHECK_EQUAL(read(fds[0], &b, 1), 1);
  return succeed();
}
