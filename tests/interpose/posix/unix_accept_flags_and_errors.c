// SPDX-License-Identifier: Apache-2.0
// accept4 sets known flags on the new socket, which inherits none of the listener's; accept on a
// socket that does not listen, does not block or times out, and on no socket.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

static struct sockaddr_un a = {.sun_family = AF_UNIX};

static void dial(void) {
  const int c = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(connect(c, (const struct sockaddr*)&a, sizeof a), 0);
}

int main(void) {
  snprintf(a.sun_path + 1, 60, "%s-%d", program_invocation_short_name, getpid());
  const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
  FAILS(accept(s, NULL, NULL), EINVAL);
  CHECK_EQUAL(bind(s, (const struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(listen(s, 8), 0);
  FAILS(accept(s, NULL, NULL), EAGAIN);
  FAILS(accept4(s, NULL, NULL, 1), EINVAL);
  dial();
  const int p = accept4(s, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  CHECK(p >= 0);
  CHECK_EQUAL(fcntl(p, F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(fcntl(p, F_GETFL), O_RDWR | O_NONBLOCK);
  dial();
  const int q = accept(s, NULL, NULL);
  CHECK_EQUAL(fcntl(q, F_GETFD), 0);
  CHECK_EQUAL(fcntl(q, F_GETFL), O_RDWR);
  CHECK_EQUAL(fcntl(s, F_SETFL, 0), 0);
  const struct timeval limit = {0, 5000};
  CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  FAILS(accept(s, NULL, NULL), EAGAIN);
  FAILS(accept(p, NULL, NULL), EINVAL);
  FAILS(accept(socket(AF_UNIX, SOCK_DGRAM, 0), NULL, NULL), EOPNOTSUPP);
  FAILS(accept(open("/dev/null", O_RDWR), NULL, NULL), ENOTSOCK);
  FAILS(accept(999, NULL, NULL), EBADF);
  FAILS(listen(socket(AF_UNIX, SOCK_DGRAM, 0), 1), EOPNOTSUPP);
  FAILS(send(s, "x", 1, MSG_NOSIGNAL), ENOTCONN);
  return succeed();
}
