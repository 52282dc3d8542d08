// SPDX-License-Identifier: Apache-2.0
// SO_PEERCRED returns the creator of the pair; the type and the domain can be queried.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int fds[2], value = 0;
  struct ucred peer;
  socklen_t size = sizeof peer;
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  CHECK_EQUAL(getsockopt(fds[0], SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
  CHECK_EQUAL(peer.pid, getpid());
  CHECK_EQUAL(peer.uid, getuid());
  size = sizeof value;
  CHECK_EQUAL(getsockopt(fds[0], SOL_SOCKET, SO_TYPE, &value, &size), 0);
  CHECK_EQUAL(value, SOCK_STREAM);
  CHECK_EQUAL(getsockopt(fds[0], SOL_SOCKET, SO_DOMAIN, &value, &size), 0);
  CHECK_EQUAL(value, AF_UNIX);
  CHECK_EQUAL(getsockopt(fds[0], SOL_SOCKET, SO_ERROR, &value, &size), 0);
  CHECK_EQUAL(value, 0);
  return succeed();
}
