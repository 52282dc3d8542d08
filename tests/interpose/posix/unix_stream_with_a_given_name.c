// SPDX-License-Identifier: Apache-2.0
// A unix listener that is bound without a name gets one, by which clients reach it. Binding it
// again without a name keeps that name.
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../small.h"

int main(void) {
  struct sockaddr_un a = {.sun_family = AF_UNIX}, b;
  socklen_t n = sizeof a, m = sizeof b;
  char c[4];
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0), s = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK_EQUAL(bind(listener, (struct sockaddr*)&a, sizeof a.sun_family), 0);
  CHECK_EQUAL(getsockname(listener, (struct sockaddr*)&a, &n), 0);
  CHECK_EQUAL(n, offsetof(struct sockaddr_un, sun_path) + 6);
  b.sun_family = AF_UNIX;
  CHECK_EQUAL(bind(listener, (struct sockaddr*)&b, sizeof b.sun_family), 0);
  CHECK_EQUAL(getsockname(listener, (struct sockaddr*)&b, &m), 0);
  CHECK(m == n && memcmp(&a, &b, n) == 0);
  CHECK_EQUAL(listen(listener, 1), 0);
  CHECK_EQUAL(connect(s, (struct sockaddr*)&a, n), 0);
  const int served = accept(listener, NULL, NULL);
  CHECK_EQUAL(write(s, "abc", 3), 3);
  CHECK_EQUAL(read(served, c, sizeof c), 3);
  return succeed();
}
