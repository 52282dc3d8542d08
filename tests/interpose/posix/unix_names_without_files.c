// SPDX-License-Identifier: Apache-2.0
// Abstract names: a server bound to one makes no file, is reached by exactly its bytes, and the
// name is free when the server closes.
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  struct sockaddr_un a = {.sun_family = AF_UNIX}, r;
  a.sun_path[1] = 'n';
  a.sun_path[2] = 0;
  snprintf(a.sun_path + 3, 40, "%s-%d", program_invocation_short_name, getpid());
  const socklen_t n =
      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 3 + strlen(a.sun_path + 3));
  const struct sockaddr* const at = (const struct sockaddr*)&a;
  const int s = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(bind(s, at, n), 0);
  FAILS(bind(s, at, n), EINVAL);
  FAILS(bind(c, at, n), EADDRINUSE);
  FAILS(connect(c, at, n), ECONNREFUSED);
  CHECK_EQUAL(listen(s, 5), 0);
  FAILS(connect(c, at, n + 1), ECONNREFUSED);
  CHECK_EQUAL(connect(c, at, n), 0);
  FAILS(connect(c, at, n), EISCONN);
  socklen_t m = sizeof r;
  CHECK_EQUAL(getpeername(c, (struct sockaddr*)&r, &m), 0);
  CHECK_EQUAL(m, n);
  CHECK_EQUAL(memcmp(&r, &a, n), 0);
  m = sizeof r;
  const int p = accept4(s, (struct sockaddr*)&r, &m, SOCK_CLOEXEC);
  CHECK(p >= 0);
  CHECK_EQUAL(m, sizeof r.sun_family);
  m = sizeof r;
  CHECK_EQUAL(getsockname(p, (struct sockaddr*)&r, &m), 0);
  CHECK(m == n && memcmp(&r, &a, n) == 0);
  CHECK_EQUAL(close(s), 0);
  CHECK_EQUAL(write(c, "x", 1), 1);
  const int again = socket(AF_UNIX, SOCK_DGRAM, 0);
  CHECK_EQUAL(bind(again, at, n), 0);
  FAILS(connect(socket(AF_UNIX, SOCK_STREAM, 0), at, n), ECONNREFUSED);
  return succeed();
}
