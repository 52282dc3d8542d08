// SPDX-License-Identifier: Apache-2.0
// bind to an address that this machine does not have fails with EADDRNOTAVAIL, for TCP and UDP,
// IPv4 and IPv6, and the socket can be bound to another one afterwards; IP_FREEBIND permits it.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../small.h"

enum { kPort = 25901 };

static int bind_to(int s, const char* ip) {
  if (strchr(ip, ':') == NULL) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(kPort)};
    CHECK_EQUAL(inet_pton(AF_INET, ip, &a.sin_addr), 1);
    return bind(s, (void*)&a, sizeof a);
  }
  struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(kPort)};
  CHECK_EQUAL(inet_pton(AF_INET6, ip, &a.sin6_addr), 1);
  return bind(s, (void*)&a, sizeof a);
}

static void refused_and_lifted(int family, int type, const char* ip) {
  const int s = socket(family, type, 0);
  const int on = 1;
  CHECK(s >= 0);
  CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
  CHECK_EQUAL(bind_to(s, ip), -1);
  CHECK_EQUAL(errno, EADDRNOTAVAIL);
  CHECK_EQUAL(setsockopt(s, IPPROTO_IP, IP_FREEBIND, &on, sizeof on), 0);
  CHECK_EQUAL(bind_to(s, ip), 0);
  CHECK_EQUAL(close(s), 0);
}

int main(void) {
  refused_and_lifted(AF_INET, SOCK_STREAM, "203.0.113.7");
  refused_and_lifted(AF_INET, SOCK_DGRAM, "203.0.113.7");
  refused_and_lifted(AF_INET6, SOCK_STREAM, "2001:db8::7");
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_EQUAL(bind_to(s, "203.0.113.7"), -1);
  CHECK_EQUAL(bind_to(s, "127.0.0.1"), 0);
  CHECK_EQUAL(close(s), 0);
  return succeed();
}
