// SPDX-License-Identifier: Apache-2.0
// IPV6_RECVPKTINFO and IPV6_RECVHOPLIMIT return each datagram's address and hop limit.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  socklen_t n = sizeof a;
  const int s = socket(AF_INET6, SOCK_DGRAM, 0), on = 1;
  if (s < 0 || bind(s, (struct sockaddr*)&a, sizeof a) != 0) return succeed();
  CHECK_EQUAL(getsockname(s, (struct sockaddr*)&a, &n), 0);
  CHECK_EQUAL(setsockopt(s, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on), 0);
  CHECK_EQUAL(setsockopt(s, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof on), 0);
  CHECK_EQUAL(sendto(s, "x", 1, 0, (struct sockaddr*)&a, n), 1);
  char control[256] __attribute__((aligned(8))), b[4];
  struct iovec v = {b, sizeof b};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control};
  m.msg_controllen = sizeof control;
  CHECK_EQUAL(recvmsg(s, &m, 0), 1);
  int seen = 0;
  for (struct cmsghdr* k = CMSG_FIRSTHDR(&m); k != NULL; k = CMSG_NXTHDR(&m, k)) {
    if (k->cmsg_level != IPPROTO_IPV6) continue;
    if (k->cmsg_type == IPV6_PKTINFO) {
      const struct in6_pktinfo* const i = (const struct in6_pktinfo*)CMSG_DATA(k);
      seen += IN6_IS_ADDR_LOOPBACK(&i->ipi6_addr) ? 1 : 0;
    }
    if (k->cmsg_type == IPV6_HOPLIMIT) seen += *(const int*)CMSG_DATA(k) == 64 ? 2 : 0;
  }
  CHECK_EQUAL(seen, 3);
  return succeed();
}
