// SPDX-License-Identifier: Apache-2.0
// IP_PKTINFO, IP_RECVTTL, IP_RECVTOS and SO_TIMESTAMP return each datagram's destination, time to
// live, class and time. A control message that is too short for its type is refused.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../small.h"

// sendmsg() with a control message of `size` bytes.
static ssize_t send_with(int fd, const struct sockaddr_in* to, int level, int type, size_t size) {
  char control[128] __attribute__((aligned(8))) = {0};
  struct iovec v = {(char*)"y", 1};
  struct msghdr m = {.msg_name = (void*)to,
                     .msg_namelen = sizeof *to,
                     .msg_iov = &v,
                     .msg_iovlen = 1,
                     .msg_control = control};
  m.msg_controllen = CMSG_SPACE(size);
  struct cmsghdr* const k = CMSG_FIRSTHDR(&m);
  k->cmsg_level = level;
  k->cmsg_type = type;
  k->cmsg_len = CMSG_LEN(size);
  return sendmsg(fd, &m, 0);
}

int main(void) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t n = sizeof a;
  const int s = socket(AF_INET, SOCK_DGRAM, 0), c = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
  CHECK_EQUAL(bind(s, (struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(getsockname(s, (struct sockaddr*)&a, &n), 0);
  CHECK_EQUAL(setsockopt(s, IPPROTO_IP, IP_PKTINFO, &on, sizeof on), 0);
  CHECK_EQUAL(setsockopt(s, IPPROTO_IP, IP_RECVTTL, &on, sizeof on), 0);
  CHECK_EQUAL(setsockopt(s, IPPROTO_IP, IP_RECVTOS, &on, sizeof on), 0);
  CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof on), 0);
  const int ttl = 33, tos = 0x10;
  CHECK_EQUAL(setsockopt(c, IPPROTO_IP, IP_TTL, &ttl, sizeof ttl), 0);
  CHECK_EQUAL(setsockopt(c, IPPROTO_IP, IP_TOS, &tos, sizeof tos), 0);
  CHECK_EQUAL(sendto(c, "x", 1, 0, (struct sockaddr*)&a, n), 1);
  char control[256] __attribute__((aligned(8))), b[4];
  struct iovec v = {b, sizeof b};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control};
  m.msg_controllen = sizeof control;
  CHECK_EQUAL(recvmsg(s, &m, 0), 1);
  int seen = 0;
  for (struct cmsghdr* k = CMSG_FIRSTHDR(&m); k != NULL; k = CMSG_NXTHDR(&m, k)) {
    if (k->cmsg_level == IPPROTO_IP && k->cmsg_type == IP_PKTINFO) {
      const struct in_pktinfo* const i = (const struct in_pktinfo*)CMSG_DATA(k);
      CHECK_EQUAL(i->ipi_addr.s_addr, htonl(INADDR_LOOPBACK));
      seen |= 1;
    }
    if (k->cmsg_level == IPPROTO_IP && k->cmsg_type == IP_TTL) {
      CHECK_EQUAL(*(const int*)CMSG_DATA(k), 33);
      seen |= 2;
    }
    if (k->cmsg_level == IPPROTO_IP && k->cmsg_type == IP_TOS) {
      CHECK_EQUAL(*CMSG_DATA(k), 0x10);
      seen |= 4;
    }
    if (k->cmsg_level == SOL_SOCKET && k->cmsg_type == SCM_TIMESTAMP) seen |= 8;
  }
  CHECK_EQUAL(seen, 15);
  CHECK_EQUAL(send_with(c, &a, IPPROTO_IP, IP_PKTINFO, sizeof(struct in_pktinfo)), 1);
  CHECK_EQUAL(send_with(c, &a, IPPROTO_IP, IP_PKTINFO, 4), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(send_with(c, &a, IPPROTO_IP, IP_TTL, 2), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
