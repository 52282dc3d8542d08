// SPDX-License-Identifier: Apache-2.0
// MSG_NOSIGNAL returns EPIPE instead of the signal that would kill.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../child.h"

static int fds[2];
static int sender(int flags) {
  const ssize_t n = send(fds[0], "x", 1, flags);
  return n == -1 && errno == EPIPE ? 0 : 1;
}

int main(void) {
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  close(fds[1]);
  CHECK_EQUAL(status_of(start_process(sender, MSG_NOSIGNAL)), 0);
  CHECK_EQUAL(WTERMSIG(status_of(start_process(sender, 0))), SIGPIPE);
  return succeed();
}
