// SPDX-License-Identifier: Apache-2.0
// A unix server that does not accept: backlog + 1 connections can wait, a further
// nonblocking connect fails with EAGAIN, and an accept makes room.
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/un.h>

#include "../small.h"

static struct sockaddr_un a = {.sun_family = AF_UNIX};

static int attempt(void) {
  const int c = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
  return connect(c, (const struct sockaddr*)&a, sizeof a) == 0 ? 0 : errno;
}

int main(void) {
  snprintf(a.sun_path + 1, 60, "%s-%d", program_invocation_short_name, getpid());
  const int s = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(bind(s, (const struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(attempt(), ECONNREFUSED);
  CHECK_EQUAL(listen(s, 2), 0);
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(attempt(), 0);
  CHECK_EQUAL(attempt(), EAGAIN);
  CHECK(accept(s, NULL, NULL) >= 0);
  CHECK_EQUAL(attempt(), 0);
  CHECK_EQUAL(attempt(), EAGAIN);
  int v = 0;
  socklen_t n = sizeof v;
  CHECK_EQUAL(getsockopt(s, SOL_SOCKET, SO_ACCEPTCONN, &v, &n), 0);
  CHECK_EQUAL(v, 1);
  return succeed();
}
