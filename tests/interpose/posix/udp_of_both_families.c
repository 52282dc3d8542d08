// SPDX-License-Identifier: Apache-2.0
// An IPv6 socket receives IPv4 as mapped addresses, unless IPV6_V6ONLY is set; then the same port
// is free for IPv4.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../small.h"

static int only(int s) {
  int v = -1;
  socklen_t n = sizeof v;
  CHECK_EQUAL(getsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &v, &n), 0);
  return v;
}

int main(void) {
  struct sockaddr_in6 a6 = {.sin6_family = AF_INET6}, from;
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t n = sizeof a6;
  char b[INET6_ADDRSTRLEN];
  const int s = socket(AF_INET6, SOCK_DGRAM, 0), c = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
  if (s < 0) return succeed();
  const int off = 0;
  CHECK_EQUAL(setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off), 0);
  CHECK_EQUAL(bind(s, (struct sockaddr*)&a6, sizeof a6), 0);
  CHECK_EQUAL(getsockname(s, (struct sockaddr*)&a6, &n), 0);
  a.sin_port = a6.sin6_port;
  CHECK_EQUAL(sendto(c, "x", 1, 0, (struct sockaddr*)&a, sizeof a), 1);
  n = sizeof from;
  CHECK_EQUAL(recvfrom(s, b, sizeof b, 0, (struct sockaddr*)&from, &n), 1);
  CHECK_EQUAL(from.sin6_family, AF_INET6);
  CHECK(inet_ntop(AF_INET6, &from.sin6_addr, b, sizeof b) != NULL);
  CHECK_EQUAL(strcmp(b, "::ffff:127.0.0.1"), 0);
  CHECK_EQUAL(sendto(s, "y", 1, 0, (struct sockaddr*)&from, n), 1);
  CHECK_EQUAL(recv(c, b, sizeof b, 0), 1);
  const int t = socket(AF_INET6, SOCK_DGRAM, 0), u = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK_EQUAL(setsockopt(t, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on), 0);
  CHECK_EQUAL(only(t), 1);
  a6.sin6_port = 0;
  CHECK_EQUAL(bind(t, (struct sockaddr*)&a6, sizeof a6), 0);
  n = sizeof a6;
  CHECK_EQUAL(getsockname(t, (struct sockaddr*)&a6, &n), 0);
  a.sin_port = a6.sin6_port;
  CHECK_EQUAL(bind(u, (struct sockaddr*)&a, sizeof a), 0);
  return succeed();
}
