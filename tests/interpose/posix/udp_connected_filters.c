// SPDX-License-Identifier: Apache-2.0
// A connected UDP socket receives only from its peer, has names at both ends, and AF_UNSPEC
// disconnects it; without a connection send needs an address.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../small.h"

static struct sockaddr_in name_of(int s) {
  struct sockaddr_in a;
  socklen_t n = sizeof a;
  CHECK_EQUAL(getsockname(s, (struct sockaddr*)&a, &n), 0);
  CHECK_EQUAL(n, sizeof a);
  return a;
}

static int bound(void) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const int s = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK_EQUAL(bind(s, (struct sockaddr*)&a, sizeof a), 0);
  return s;
}

int main(void) {
  const int a = bound(), b = bound(), c = bound();
  struct sockaddr_in na = name_of(a), nb = name_of(b), r;
  char x[8];
  socklen_t n = sizeof r;
  CHECK(na.sin_port != 0 && na.sin_port != nb.sin_port);
  CHECK(send(a, "x", 1, 0) == -1 && errno == EDESTADDRREQ);
  CHECK(getpeername(a, (struct sockaddr*)&r, &n) == -1 && errno == ENOTCONN);
  CHECK_EQUAL(connect(a, (struct sockaddr*)&nb, sizeof nb), 0);
  n = sizeof r;
  CHECK_EQUAL(getpeername(a, (struct sockaddr*)&r, &n), 0);
  CHECK(r.sin_port == nb.sin_port);
  CHECK_EQUAL(sendto(c, "no", 2, 0, (struct sockaddr*)&na, sizeof na), 2);
  CHECK_EQUAL(sendto(b, "yes", 3, 0, (struct sockaddr*)&na, sizeof na), 3);
  CHECK_EQUAL(recv(a, x, sizeof x, 0), 3);
  CHECK_EQUAL(memcmp(x, "yes", 3), 0);
  CHECK(recv(a, x, sizeof x, MSG_DONTWAIT) == -1 && errno == EAGAIN);
  CHECK_EQUAL(send(a, "back", 4, 0), 4);
  n = sizeof r;
  CHECK_EQUAL(recvfrom(b, x, sizeof x, 0, (struct sockaddr*)&r, &n), 4);
  CHECK(r.sin_port == na.sin_port && r.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
  const struct sockaddr none = {.sa_family = AF_UNSPEC};
  CHECK_EQUAL(connect(a, &none, sizeof none), 0);
  n = sizeof r;
  CHECK(getpeername(a, (struct sockaddr*)&r, &n) == -1 && errno == ENOTCONN);
  CHECK(send(a, "x", 1, 0) == -1 && errno == EDESTADDRREQ);
  CHECK_EQUAL(sendto(c, "", 0, 0, (struct sockaddr*)&nb, sizeof nb), 0);
  CHECK_EQUAL(recv(b, x, sizeof x, 0), 0);
  return succeed();
}
