// SPDX-License-Identifier: Apache-2.0
// Connecting to a Unix name without a listener fails at once, and so do calls of the wrong kind.
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/un.h>

#include "../small.h"

int main(void) {
  struct sockaddr_un a = {AF_UNIX, "/tmp/crane-no-such-socket"};
  char c;
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(connect(fd, (struct sockaddr*)&a, sizeof a), -1);
  CHECK_EQUAL(errno, ENOENT);
  CHECK_EQUAL(accept(fd, NULL, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(recv(fd, &c, 1, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(send(1000, "x", 1, 0), -1);
  CHECK_EQUAL(errno, EBADF);
  return succeed();
}
