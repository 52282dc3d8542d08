// SPDX-License-Identifier: Apache-2.0
// native: no
// The only interface of every replica: its values, groups on it, and that it leads nowhere.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "internet.h"

static const char* text_of(const void* a) {
  static char text[INET_ADDRSTRLEN];
  return inet_ntop(AF_INET, &((const In*)a)->sin_addr, text, sizeof text);
}

static void interfaces(int fd) {
  struct ifreq all[8], one;
  struct ifconf list;
  list.ifc_len = sizeof all;
  list.ifc_req = all;
  CHECK(ioctl(fd, SIOCGIFCONF, &list) == 0);
  for (int i = 0; i < list.ifc_len / (int)sizeof all[0]; ++i) {
    one = all[i];
    printf("%s %s", one.ifr_name, text_of(&one.ifr_addr));
    CHECK(ioctl(fd, SIOCGIFNETMASK, &one) == 0);
    printf(" %s", text_of(&one.ifr_netmask));
    CHECK(ioctl(fd, SIOCGIFFLAGS, &one) == 0);
    printf(" flags %x", (unsigned)one.ifr_flags);
    CHECK(ioctl(fd, SIOCGIFMTU, &one) == 0);
    printf(" mtu %d", one.ifr_mtu);
    CHECK(ioctl(fd, SIOCGIFHWADDR, &one) == 0);
    for (int k = 0; k < 6; ++k)
      printf("%c%02x", k == 0 ? ' ' : ':', one.ifr_hwaddr.sa_data[k] & 255);
    CHECK(ioctl(fd, SIOCGIFINDEX, &one) == 0);
    printf(" index %d\n", one.ifr_ifindex);
    CHECK(if_nametoindex(all[i].ifr_name) == (unsigned)one.ifr_ifindex);
  }
  one.ifr_flags = 0;
  CHECK(ioctl(fd, SIOCSIFFLAGS, &one) < 0 && errno == EPERM);
  struct ifaddrs* entries;
  CHECK(getifaddrs(&entries) == 0);
  for (const struct ifaddrs* i = entries; i != NULL; i = i->ifa_next) {
    if (i->ifa_addr->sa_family == AF_INET) printf("%s %s\n", i->ifa_name, text_of(i->ifa_addr));
  }
  freeifaddrs(entries);
  struct if_nameindex* names = if_nameindex();
  for (int i = 0; names[i].if_index != 0; ++i)
    printf("%u %s\n", names[i].if_index, names[i].if_name);
  if_freenameindex(names);
}

// A datagram to a group reaches the members in this server, and no others.
static void groups(int fd) {
  const In any = at("0.0.0.0", 1900), group = at("239.255.255.250", 1900);
  const int on = 1, member = socket(AF_INET, SOCK_DGRAM, 0), other = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK(setsockopt(member, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  CHECK(setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  CHECK(bind(member, (const Any*)&any, sizeof any) == 0);
  CHECK(bind(other, (const Any*)&any, sizeof any) == 0);
  struct ip_mreq m;
  m.imr_multiaddr = group.sin_addr;
  m.imr_interface = at("192.0.2.1", 0).sin_addr;
  CHECK(setsockopt(member, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof m) == 0);
  CHECK_EQUAL(sendto(fd, "all", 3, 0, (const Any*)&group, sizeof group), 3);
  char text[8];
  In from;
  socklen_t n = sizeof from;
  CHECK_EQUAL(recvfrom(member, text, sizeof text, 0, (Any*)&from, &n), 3);
  printf("from %s port %d\n", text_of(&from), ntohs(from.sin_port));
  CHECK(recv(other, text, sizeof text, MSG_DONTWAIT) < 0 && errno == EAGAIN);
  const int off = 0;
  CHECK(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_LOOP, &off, sizeof off) == 0);
  CHECK_EQUAL(sendto(fd, "all", 3, 0, (const Any*)&group, sizeof group), 3);
  CHECK(recv(member, text, sizeof text, MSG_DONTWAIT) < 0 && errno == EAGAIN);
  close(member);
  close(other);
}

static void outside(int fd) {
  const In far = at("203.0.113.9", 53);
  CHECK_EQUAL(sendto(fd, "far", 3, 0, (const Any*)&far, sizeof far), 3);
  CHECK(connect(fd, (const Any*)&far, sizeof far) == 0);
  In mine;
  socklen_t n = sizeof mine;
  CHECK(getsockname(fd, (Any*)&mine, &n) == 0);
  printf("speaks as %s\n", text_of(&mine));
  char byte;
  CHECK(recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

int main(void) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  interfaces(fd);
  groups(fd);
  outside(fd);
  return succeed();
}
