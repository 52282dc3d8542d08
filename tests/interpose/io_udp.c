// SPDX-License-Identifier: Apache-2.0
// UDP between the sockets of one program, over loopback: order, waiting, readiness, whole
// datagrams, connected sockets, refusal, dual stack, other processes, groups; and the interfaces.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "internet.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

// A socket on a port of 127.0.0.1 that the system chooses.
static int bound(In* where) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  *where = at("127.0.0.1", 0);
  socklen_t n = sizeof *where;
  CHECK(bind(fd, (const Any*)where, n) == 0);
  CHECK(getsockname(fd, (Any*)where, &n) == 0 && n == sizeof *where && where->sin_port != 0);
  return fd;
}

static ssize_t to(int fd, const In* where, const char* text) {
  return sendto(fd, text, strlen(text), 0, (const Any*)where, sizeof *where);
}

static int readable(int fd) {
  struct pollfd p = {fd, POLLIN, 0};
  return poll(&p, 1, 0) == 1 ? p.revents : 0;
}

static void order_and_sender(void) {
  In a, b, from;
  const int x = bound(&a), y = bound(&b);
  CHECK(a.sin_port != b.sin_port);
  char text[16] = "";
  FAILS(recv(y, text, sizeof text, MSG_DONTWAIT), EAGAIN);
  CHECK_EQUAL(readable(y), 0);
  CHECK_EQUAL(to(x, &b, "one"), 3);
  CHECK_EQUAL(to(x, &b, ""), 0);
  CHECK_EQUAL(to(x, &b, "three"), 5);
  CHECK_EQUAL(readable(y), POLLIN);
  socklen_t n = sizeof from;
  CHECK_EQUAL(recvfrom(y, text, sizeof text, MSG_PEEK, (Any*)&from, &n), 3);
  CHECK_EQUAL(recvfrom(y, text, sizeof text, 0, (Any*)&from, &n), 3);
  CHECK(n == sizeof from && memcmp(&from, &a, sizeof a) == 0 && memcmp(text, "one", 3) == 0);
  CHECK_EQUAL(recv(y, text, sizeof text, 0), 0);  // an empty datagram is a datagram
  int waiting = 0;
  CHECK(ioctl(y, FIONREAD, &waiting) == 0);
  CHECK_EQUAL(waiting, 5);
  struct iovec parts[2] = {{text, 2}, {text + 8, 2}};
  struct msghdr m;
  memset(&m, 0, sizeof m);
  m.msg_iov = parts;
  m.msg_iovlen = 2;
  CHECK_EQUAL(recvmsg(y, &m, MSG_TRUNC), 5);
  CHECK(m.msg_flags == MSG_TRUNC && memcmp(text, "th", 2) == 0 && memcmp(text + 8, "re", 2) == 0);
  CHECK_EQUAL(readable(y), 0);
  close(x);
  close(y);
  puts("order, sender, peek, cut");
}

static void* answers(void* argument) {
  const int fd = *(const int*)argument;
  for (int i = 0; i < 100; ++i) {
    char text[8];
    In from;
    socklen_t n = sizeof from;
    const ssize_t got = recvfrom(fd, text, sizeof text, 0, (Any*)&from, &n);
    CHECK(sendto(fd, text, (size_t)got, 0, (const Any*)&from, n) == got);
  }
  return NULL;
}

static void waiting(void) {
  In a, b;
  int x = bound(&a);
  const int y = bound(&b);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, answers, &x) == 0);
  CHECK(connect(y, (const Any*)&a, sizeof a) == 0);
  for (int i = 0; i < 100; ++i) {
    char text[8];
    CHECK_EQUAL(write(y, &i, sizeof i), sizeof i);
    int back = -1;
    CHECK(read(y, text, sizeof text) == sizeof back);
    memcpy(&back, text, sizeof back);
    CHECK_EQUAL(back, i);
  }
  pthread_join(thread, NULL);
  const struct timeval soon = {0, 20000};
  char byte;
  CHECK(setsockopt(y, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon) == 0);
  FAILS(recv(y, &byte, 1, 0), EAGAIN);
  close(x);
  close(y);
  puts("a thread answers 100 times");
}

static void connected(void) {
  In a, b, c, peer;
  const int x = bound(&a), y = bound(&b), z = bound(&c);
  char text[8];
  FAILS(send(x, "x", 1, 0), EDESTADDRREQ);
  CHECK(connect(x, (const Any*)&b, sizeof b) == 0);
  socklen_t n = sizeof peer;
  CHECK(getpeername(x, (Any*)&peer, &n) == 0 && memcmp(&peer, &b, sizeof b) == 0);
  FAILS(getpeername(y, (Any*)&peer, &n), ENOTCONN);
  CHECK_EQUAL(to(z, &a, "other"), 5);  // x receives only from y
  CHECK_EQUAL(to(y, &a, "peer"), 4);
  CHECK_EQUAL(recv(x, text, sizeof text, 0), 4);
  CHECK_EQUAL(readable(x), 0);
  CHECK_EQUAL(to(x, &c, "z"), 1);
  CHECK_EQUAL(recv(z, text, sizeof text, 0), 1);
  close(y);
  CHECK_EQUAL(send(x, "lost", 4, 0), 4);  // no receiver: the next call reports it
  FAILS(recv(x, text, sizeof text, 0), ECONNREFUSED);
  CHECK_EQUAL(send(x, "lost", 4, 0), 4);
  int error = 0;
  n = sizeof error;
  CHECK(getsockopt(x, SOL_SOCKET, SO_ERROR, &error, &n) == 0);
  CHECK_EQUAL(error, ECONNREFUSED);
  CHECK_EQUAL(to(z, &b, "lost"), 4);  // not connected: no error is reported
  FAILS(recv(z, text, sizeof text, MSG_DONTWAIT), EAGAIN);
  close(x);
  close(z);
  puts("connected sockets, refusal");
}

static void sizes(void) {
  enum { kMost = 65507 };
  In a, b;
  const int x = bound(&a), y = bound(&b);
  char* out = malloc(kMost + 1);
  char* in = malloc(kMost);
  for (int i = 0; i <= kMost; ++i) out[i] = (char)(i * 7 + i / 251);
  FAILS(sendto(x, out, kMost + 1, 0, (const Any*)&b, sizeof b), EMSGSIZE);
  static const int all[] = {1, 4063, 4064, 4065, 4096, 8160, 20000, kMost};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
    struct iovec parts[3] = {{out, 1}, {out + 1, 0}, {out + 1, (size_t)all[i] - 1}};
    struct msghdr m;
    memset(&m, 0, sizeof m);
    m.msg_name = &b;
    m.msg_namelen = sizeof b;
    m.msg_iov = parts;
    m.msg_iovlen = 3;
    CHECK_EQUAL(sendmsg(x, &m, 0), all[i]);
    memset(in, 0, kMost);
    CHECK_EQUAL(recv(y, in, kMost, 0), all[i]);
    CHECK(memcmp(in, out, (size_t)all[i]) == 0);
  }
  free(out);
  free(in);
  close(x);
  close(y);
  puts("datagrams of all sizes");
}

static void ports(void) {
  In a, any;
  const int x = bound(&a), y = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
  FAILS(bind(y, (const Any*)&a, sizeof a), EADDRINUSE);
  any = at("0.0.0.0", ntohs(a.sin_port));
  FAILS(bind(y, (const Any*)&any, sizeof any), EADDRINUSE);
  const int on = 1;
  setsockopt(x, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(y, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  CHECK(bind(y, (const Any*)&any, sizeof any) == 0);
  FAILS(bind(y, (const Any*)&any, sizeof any), EINVAL);
  const int z = socket(AF_INET, SOCK_DGRAM, 0);
  const In far = at("203.0.113.9", 0);
  FAILS(bind(z, (const Any*)&far, sizeof far), EADDRNOTAVAIL);
  FAILS(listen(z, 1), EOPNOTSUPP);
  FAILS(accept(z, NULL, NULL), EOPNOTSUPP);
  // A socket bound to this very address comes before the wildcard.
  char text[4];
  CHECK_EQUAL(to(z, &a, "x"), 1);
  CHECK_EQUAL(recv(x, text, sizeof text, 0), 1);
  FAILS(recv(y, text, sizeof text, MSG_DONTWAIT), EAGAIN);
  close(x);
  CHECK_EQUAL(to(z, &a, "y"), 1);
  CHECK_EQUAL(recv(y, text, sizeof text, 0), 1);
  int type = 0, protocol = 0;
  socklen_t n = sizeof type;
  CHECK(getsockopt(z, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_DGRAM);
  CHECK(getsockopt(z, SOL_SOCKET, SO_PROTOCOL, &protocol, &n) == 0 && protocol == IPPROTO_UDP);
  close(y);
  close(z);
  puts("ports and addresses");
}

static void readiness(void) {
  In a, b;
  const int x = bound(&a), y = bound(&b), e = epoll_create1(0);
  struct epoll_event event = {EPOLLIN | EPOLLET, {.u32 = 7}};
  CHECK(epoll_ctl(e, EPOLL_CTL_ADD, y, &event) == 0);
  CHECK_EQUAL(epoll_wait(e, &event, 1, 0), 0);
  const pid_t child = fork();
  if (child == 0) _exit(to(x, &b, "child") == 5 ? 0 : 1);
  CHECK_EQUAL(epoll_wait(e, &event, 1, -1), 1);
  CHECK_EQUAL(epoll_wait(e, &event, 1, 0), 0);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK_EQUAL(to(x, &b, "again"), 5);
  CHECK_EQUAL(epoll_wait(e, &event, 1, 0), 1);
  fd_set in, out;
  FD_ZERO(&in);
  FD_ZERO(&out);
  FD_SET(x, &in);
  FD_SET(y, &in);
  FD_SET(y, &out);
  CHECK_EQUAL(select((x > y ? x : y) + 1, &in, &out, NULL, NULL), 2);
  CHECK(!FD_ISSET(x, &in) && FD_ISSET(y, &in) && FD_ISSET(y, &out));
  char text[8];
  CHECK_EQUAL(recv(y, text, sizeof text, 0), 5);
  CHECK(memcmp(text, "child", 5) == 0);
  CHECK_EQUAL(recv(y, text, sizeof text, 0), 5);
  CHECK(memcmp(text, "again", 5) == 0);
  close(x);
  close(y);
  close(e);
  puts("readiness, from another process");
}

static void dual_stack(void) {
  struct sockaddr_in6 a6;
  memset(&a6, 0, sizeof a6);
  a6.sin6_family = AF_INET6;
  const int six = socket(AF_INET6, SOCK_DGRAM, 0);
  socklen_t n = sizeof a6;
  CHECK(bind(six, (const Any*)&a6, n) == 0 && getsockname(six, (Any*)&a6, &n) == 0);
  In a, four = at("127.0.0.1", ntohs(a6.sin6_port));
  const int x = bound(&a);
  CHECK_EQUAL(to(x, &four, "4"), 1);
  char text[INET6_ADDRSTRLEN];
  CHECK_EQUAL(recvfrom(six, text, sizeof text, 0, (Any*)&a6, &n), 1);
  printf("dual stack: from %s\n", inet_ntop(AF_INET6, &a6.sin6_addr, text, sizeof text));
  CHECK(n == sizeof a6 && a6.sin6_port == a.sin_port);
  CHECK_EQUAL(sendto(six, "6", 1, 0, (const Any*)&a6, n), 1);
  CHECK_EQUAL(recv(x, text, sizeof text, 0), 1);
  close(six);
  close(x);
}

static void groups(void) {
  In a;
  const int x = bound(&a);
  struct ip_mreq m;
  m.imr_multiaddr = at("239.255.255.250", 0).sin_addr;
  m.imr_interface = at("127.0.0.1", 0).sin_addr;
  FAILS(setsockopt(x, IPPROTO_IP, IP_DROP_MEMBERSHIP, &m, sizeof m), EADDRNOTAVAIL);
  CHECK(setsockopt(x, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof m) == 0);
  FAILS(setsockopt(x, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof m), EADDRINUSE);
  CHECK(setsockopt(x, IPPROTO_IP, IP_DROP_MEMBERSHIP, &m, sizeof m) == 0);
  m.imr_multiaddr = at("127.0.0.1", 0).sin_addr;
  FAILS(setsockopt(x, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof m), EINVAL);
  unsigned char ttl = 4;
  CHECK(setsockopt(x, IPPROTO_IP, IP_MULTICAST_TTL, &ttl, sizeof ttl) == 0);
  int number = 0;
  socklen_t n = sizeof number;
  CHECK(getsockopt(x, IPPROTO_IP, IP_MULTICAST_TTL, &number, &n) == 0);
  CHECK_EQUAL(number, 4);
  const In wide = at("255.255.255.255", 9);
  FAILS(sendto(x, "x", 1, 0, (const Any*)&wide, sizeof wide), EACCES);
  close(x);
  puts("groups");
}

// The loopback interface, queried in every way.
static void loopback(void) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct ifreq all[32], one;
  struct ifconf list;
  list.ifc_len = sizeof all;
  list.ifc_req = all;
  CHECK(ioctl(fd, SIOCGIFCONF, &list) == 0);
  const In wanted = at("127.0.0.1", 0);
  int found = 0;
  for (int i = 0; i < list.ifc_len / (int)sizeof all[0]; ++i) {
    if (strcmp(all[i].ifr_name, "lo") != 0) continue;
    found += memcmp(&((const In*)&all[i].ifr_addr)->sin_addr, &wanted.sin_addr, 4) == 0;
  }
  CHECK_EQUAL(found, 1);
  memset(&one, 0, sizeof one);
  strcpy(one.ifr_name, "lo");
  CHECK(ioctl(fd, SIOCGIFFLAGS, &one) == 0);
  CHECK_EQUAL(one.ifr_flags & (IFF_UP | IFF_LOOPBACK), IFF_UP | IFF_LOOPBACK);
  CHECK(ioctl(fd, SIOCGIFINDEX, &one) == 0);
  char name[IF_NAMESIZE];
  CHECK(if_nametoindex("lo") == (unsigned)one.ifr_ifindex);
  CHECK(if_indextoname((unsigned)one.ifr_ifindex, name) == name && strcmp(name, "lo") == 0);
  strcpy(one.ifr_name, "nothing0");
  FAILS(ioctl(fd, SIOCGIFADDR, &one), ENODEV);
  CHECK(if_nametoindex("nothing0") == 0);
  struct ifaddrs* entries;
  CHECK(getifaddrs(&entries) == 0);
  found = 0;
  for (const struct ifaddrs* i = entries; i != NULL; i = i->ifa_next) {
    if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET) continue;
    found += memcmp(&((const In*)i->ifa_addr)->sin_addr, &wanted.sin_addr, 4) == 0;
  }
  CHECK_EQUAL(found, 1);
  freeifaddrs(entries);
  close(fd);
  puts("loopback");
}

int main(void) {
  order_and_sender();
  waiting();
  connected();
  sizes();
  ports();
  readiness();
  dual_stack();
  groups();
  loopback();
  return succeed();
}
