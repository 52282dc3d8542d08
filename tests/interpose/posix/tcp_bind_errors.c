// SPDX-License-Identifier: Apache-2.0
// bind of TCP: an address in use, a second bind, an address that is too short; port 0 gets a port,
// which getsockname returns; SO_REUSEPORT shares it.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}, b;
  const int s = socket(AF_INET, SOCK_STREAM, 0), t = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  socklen_t n = sizeof b;
  CHECK_EQUAL(getsockname(s, (struct sockaddr*)&b, &n), 0);
  CHECK(b.sin_port == 0 && b.sin_addr.s_addr == 0);
  FAILS(bind(s, (struct sockaddr*)&a, 4), EINVAL);
  CHECK_EQUAL(bind(s, (struct sockaddr*)&a, sizeof a), 0);
  FAILS(bind(s, (struct sockaddr*)&a, sizeof a), EINVAL);
  n = sizeof a;
  CHECK_EQUAL(getsockname(s, (struct sockaddr*)&a, &n), 0);
  CHECK(a.sin_port != 0);
  CHECK_EQUAL(listen(s, 1), 0);
  FAILS(bind(t, (struct sockaddr*)&a, sizeof a), EADDRINUSE);
  CHECK_EQUAL(close(s), 0);
  CHECK_EQUAL(bind(t, (struct sockaddr*)&a, sizeof a), 0);
  int u[2];
  a.sin_port = 0;
  for (int i = 0; i < 2; ++i) {
    u[i] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(setsockopt(u[i], SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), 0);
    CHECK_EQUAL(bind(u[i], (struct sockaddr*)&a, sizeof a), 0);
    CHECK_EQUAL(getsockname(u[i], (struct sockaddr*)&a, &n), 0);
    CHECK_EQUAL(listen(u[i], 1), 0);
  }
  FAILS(bind(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr*)&a, sizeof a), EADDRINUSE);
  return succeed();
}
