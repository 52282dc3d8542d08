// SPDX-License-Identifier: Apache-2.0
// A datagram to a group joined on the loopback interface reaches all sockets that bound its port
// with SO_REUSEADDR, unless IP_MULTICAST_LOOP is off; the options read back.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  struct sockaddr_in a = {.sin_family = AF_INET};
  struct ip_mreqn group = {{inet_addr("239.1.2.3")}, {htonl(INADDR_LOOPBACK)}, 0};
  const int s = socket(AF_INET, SOCK_DGRAM, 0), t = socket(AF_INET, SOCK_DGRAM, 0), on = 1, off = 0;
  const int c = socket(AF_INET, SOCK_DGRAM, 0);
  socklen_t n = sizeof a;
  char b[4];
  CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
  CHECK_EQUAL(setsockopt(t, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
  CHECK_EQUAL(bind(s, (struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(getsockname(s, (struct sockaddr*)&a, &n), 0);
  CHECK_EQUAL(bind(t, (struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group), 0);
  CHECK(setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group) == -1);
  CHECK_EQUAL(errno, EADDRINUSE);
  CHECK_EQUAL(setsockopt(t, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group), 0);
  CHECK_EQUAL(setsockopt(c, IPPROTO_IP, IP_MULTICAST_IF, &group, sizeof group), 0);
  int v = -1;
  n = sizeof v;
  CHECK_EQUAL(getsockopt(c, IPPROTO_IP, IP_MULTICAST_LOOP, &v, &n), 0);
  CHECK_EQUAL(v, 1);
  CHECK_EQUAL(getsockopt(c, IPPROTO_IP, IP_MULTICAST_TTL, &v, &n), 0);
  CHECK_EQUAL(v, 1);
  a.sin_addr = group.imr_multiaddr;
  CHECK_EQUAL(sendto(c, "x", 1, 0, (struct sockaddr*)&a, sizeof a), 1);
  CHECK_EQUAL(recv(s, b, sizeof b, 0), 1);
  CHECK_EQUAL(recv(t, b, sizeof b, 0), 1);
  CHECK_EQUAL(setsockopt(t, IPPROTO_IP, IP_DROP_MEMBERSHIP, &group, sizeof group), 0);
  CHECK(setsockopt(t, IPPROTO_IP, IP_DROP_MEMBERSHIP, &group, sizeof group) == -1);
  CHECK_EQUAL(errno, EADDRNOTAVAIL);
  CHECK_EQUAL(setsockopt(c, IPPROTO_IP, IP_MULTICAST_LOOP, &off, sizeof off), 0);
  CHECK_EQUAL(getsockopt(c, IPPROTO_IP, IP_MULTICAST_LOOP, &v, &n), 0);
  CHECK_EQUAL(v, 0);
  return succeed();
}
