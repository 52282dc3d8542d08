// SPDX-License-Identifier: Apache-2.0
// close_range closes or marks a range, for all kinds of descriptors; closefrom closes all from one
// number on. Descriptors outside the range stay.
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../small.h"

static int is_there(int fd) { return fcntl(fd, F_GETFD) >= 0; }

int main(void) {
  int fds[2];
  for (int i = 20; i < 30; ++i) CHECK_EQUAL(dup2(0, i), i);
  CHECK_EQUAL(close_range(22, 24, 0), 0);
  CHECK(is_there(21) && !is_there(22) && !is_there(24) && is_there(25));
  CHECK_EQUAL(close_range(25, 26, CLOSE_RANGE_CLOEXEC), 0);
  CHECK_EQUAL(fcntl(25, F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(fcntl(27, F_GETFD), 0);
  CHECK_EQUAL(close_range(5, 4, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(close_range(5, 6, 1u << 20), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(close_range(100, 200, 0), 0);
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(dup2(fds[1], 40), 40);
  CHECK_EQUAL(close(fds[1]), 0);
  CHECK_EQUAL(dup2(eventfd(0, 0), 41), 41);
  char b;
  const pid_t child = fork();
  if (child == 0) {
    closefrom(20);
    _exit(is_there(20) || is_there(29) || is_there(40) || is_there(41) || !is_there(fds[0]));
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  CHECK_EQUAL(write(40, "x", 1), 1);
  CHECK_EQUAL(close_range(20, UINT_MAX, 0), 0);
  CHECK(!is_there(20) && !is_there(29) && !is_there(40) && !is_there(41));
  CHECK_EQUAL(read(fds[0], &b, 1), 1);
  CHECK_EQUAL(read(fds[0], &b, 1), 0);
  return succeed();
}
