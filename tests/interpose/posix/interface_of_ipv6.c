// SPDX-License-Identifier: Apache-2.0
// If IPv6 sockets reach ::1, getifaddrs lists it, with its interface and its mask.
#define _GNU_SOURCE
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  const struct sockaddr_in6 one = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  const int s = socket(AF_INET6, SOCK_STREAM, 0);
  if (s < 0 || bind(s, (const struct sockaddr*)&one, sizeof one) != 0) return succeed();
  struct ifaddrs* list = NULL;
  int found = 0;
  CHECK_EQUAL(getifaddrs(&list), 0);
  for (const struct ifaddrs* i = list; i != NULL; i = i->ifa_next) {
    if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET6) continue;
    const struct sockaddr_in6* a = (const struct sockaddr_in6*)i->ifa_addr;
    if (memcmp(&a->sin6_addr, &one.sin6_addr, sizeof one.sin6_addr) != 0) continue;
    const struct sockaddr_in6* mask = (const struct sockaddr_in6*)i->ifa_netmask;
    CHECK_EQUAL(strcmp(i->ifa_name, "lo"), 0);
    CHECK((i->ifa_flags & IFF_LOOPBACK) != 0);
    CHECK_EQUAL(mask->sin6_family, AF_INET6);
    CHECK_EQUAL(mask->sin6_addr.s6_addr[15], 0xff);
    ++found;
  }
  CHECK_EQUAL(found, 1);
  freeifaddrs(list);
  return succeed();
}
