// SPDX-License-Identifier: Apache-2.0
// A control message sets the time to live and the class of one datagram, in both families; the next
// datagram has the socket's again; invalid numbers fail with EINVAL and nothing is sent.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../small.h"

struct Names {
  int level, hops, service, hops_told, service_told;
};

static ssize_t send_with(int s, const struct sockaddr* to, socklen_t n, int level, int type,
                         const void* value, size_t size) {
  char control[64] __attribute__((aligned(8))) = {0};
  struct iovec v = {"x", 1};
  struct msghdr m = {.msg_name = (void*)to, .msg_namelen = n, .msg_iov = &v, .msg_iovlen = 1};
  if (value != NULL) {
    m.msg_control = control;
    m.msg_controllen = CMSG_SPACE(size);
    struct cmsghdr* const c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(c), value, size);
  }
  return sendmsg(s, &m, 0);
}

static void receives(int s, const struct Names* names, int hops, int service) {
  char control[256] __attribute__((aligned(8))), b[4];
  struct iovec v = {b, sizeof b};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control};
  m.msg_controllen = sizeof control;
  CHECK_EQUAL(recvmsg(s, &m, MSG_DONTWAIT), 1);
  int seen = 0;
  for (struct cmsghdr* c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_type == names->hops) {
      CHECK_EQUAL(*(const int*)CMSG_DATA(c), hops);
      seen |= 1;
    } else if (c->cmsg_type == names->service) {
      CHECK_EQUAL(*CMSG_DATA(c), service);
      seen |= 2;
    }
  }
  CHECK_EQUAL(seen, 3);
}

static void refuses(int s, const struct sockaddr* to, socklen_t n, int level, int type, int value) {
  char b[4];
  CHECK_EQUAL(send_with(s, to, n, level, type, &value, sizeof value), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(recv(s, b, sizeof b, MSG_DONTWAIT), -1);
  CHECK_EQUAL(errno, EAGAIN);
}

static void check(int s, const struct sockaddr* to, socklen_t n, const struct Names* names) {
  const int on = 1, hops = 2, service = 0x20, own = 77;
  CHECK_EQUAL(setsockopt(s, names->level, names->hops_told, &on, sizeof on), 0);
  CHECK_EQUAL(setsockopt(s, names->level, names->service_told, &on, sizeof on), 0);
  CHECK_EQUAL(setsockopt(s, names->level, names->level == IPPROTO_IP ? IP_TTL : IPV6_UNICAST_HOPS,
                         &own, sizeof own),
              0);
  CHECK_EQUAL(send_with(s, to, n, names->level, names->hops, &hops, sizeof hops), 1);
  CHECK_EQUAL(send_with(s, to, n, names->level, names->service, &service, sizeof service), 1);
  CHECK_EQUAL(send_with(s, to, n, 0, 0, NULL, 0), 1);
  receives(s, names, 2, 0);
  receives(s, names, 77, 0x20);
  receives(s, names, 77, 0);
  refuses(s, to, n, names->level, names->hops, 256);
  refuses(s, to, n, names->level, names->service, 256);
  refuses(s, to, n, names->level, names->service, -2);
}

int main(void) {
  const struct Names four = {IPPROTO_IP, IP_TTL, IP_TOS, IP_RECVTTL, IP_RECVTOS};
  const struct Names six = {IPPROTO_IPV6, IPV6_HOPLIMIT, IPV6_TCLASS, IPV6_RECVHOPLIMIT,
                            IPV6_RECVTCLASS};
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t n = sizeof a;
  const int s = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK_EQUAL(bind(s, (struct sockaddr*)&a, n), 0);
  CHECK_EQUAL(getsockname(s, (struct sockaddr*)&a, &n), 0);
  check(s, (struct sockaddr*)&a, n, &four);
  const unsigned char byte = 0x28;
  CHECK_EQUAL(send_with(s, (struct sockaddr*)&a, n, IPPROTO_IP, IP_TOS, &byte, 1), 1);
  receives(s, &four, 77, 0x28);
  refuses(s, (struct sockaddr*)&a, n, IPPROTO_IP, IP_TTL, 0);
  struct sockaddr_in6 b = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  n = sizeof b;
  const int t = socket(AF_INET6, SOCK_DGRAM, 0);
  if (t < 0 || bind(t, (struct sockaddr*)&b, n) != 0) return succeed();
  CHECK_EQUAL(getsockname(t, (struct sockaddr*)&b, &n), 0);
  check(t, (struct sockaddr*)&b, n, &six);
  return succeed();
}
