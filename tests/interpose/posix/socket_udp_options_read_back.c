// SPDX-License-Identifier: Apache-2.0
// Options of UDP sockets, IPv4 and IPv6, read back; a broadcast needs SO_BROADCAST.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../small.h"

static void back(int s, int level, int option, int before, int value) {
  int v = -1;
  socklen_t n = sizeof v;
  CHECK_EQUAL(getsockopt(s, level, option, &v, &n), 0);
  CHECK_EQUAL(v, before);
  CHECK_EQUAL(setsockopt(s, level, option, &value, sizeof value), 0);
  n = sizeof v;
  CHECK_EQUAL(getsockopt(s, level, option, &v, &n), 0);
  CHECK_EQUAL(v, value);
}

int main(void) {
  const int s = socket(AF_INET, SOCK_DGRAM, 0), t = socket(AF_INET6, SOCK_DGRAM, 0);
  const struct sockaddr_in a = {
      .sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(INADDR_BROADCAST)}};
  CHECK_EQUAL(sendto(s, "x", 1, 0, (const struct sockaddr*)&a, sizeof a), -1);
  CHECK(errno == EACCES || errno == ENETUNREACH);
  back(s, SOL_SOCKET, SO_BROADCAST, 0, 1);
  back(s, SOL_SOCKET, SO_REUSEADDR, 0, 1);
  back(s, SOL_SOCKET, SO_REUSEPORT, 0, 1);
  back(s, IPPROTO_IP, IP_TTL, 64, 5);
  back(s, IPPROTO_IP, IP_TOS, 0, 8);
  back(s, IPPROTO_IP, IP_MULTICAST_TTL, 1, 4);
  if (t >= 0) {
    back(t, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 64, 7);
    back(t, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 1, 3);
    back(t, IPPROTO_IPV6, IPV6_TCLASS, 0, 4);
    back(t, SOL_SOCKET, SO_BROADCAST, 0, 1);
  }
  return succeed();
}
