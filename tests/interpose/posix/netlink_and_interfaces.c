// SPDX-License-Identifier: Apache-2.0
// getifaddrs, if_nameindex and a netlink dump of the links all return the loopback interface, with
// its address and the same index.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include "../small.h"

static int named_by_netlink(const char* name) {
  struct {
    struct nlmsghdr h;
    struct ifinfomsg i;
  } ask = {{sizeof ask, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 7, 0}, {.ifi_family = AF_UNSPEC}};
  struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
  static char b[65536] __attribute__((aligned(8)));
  const int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  CHECK(s >= 0);
  CHECK_EQUAL(sendto(s, &ask, sizeof ask, 0, (struct sockaddr*)&kernel, sizeof kernel), sizeof ask);
  int found = 0;
  for (int done = 0; !done;) {
    ssize_t n = recv(s, b, sizeof b, 0);
    CHECK(n > 0);
    for (struct nlmsghdr* h = (struct nlmsghdr*)b; NLMSG_OK(h, (size_t)n); h = NLMSG_NEXT(h, n)) {
      CHECK_EQUAL(h->nlmsg_seq, 7);
      done |= h->nlmsg_type == NLMSG_DONE;
      if (h->nlmsg_type != RTM_NEWLINK) continue;
      struct ifinfomsg* const i = NLMSG_DATA(h);
      int left = (int)IFLA_PAYLOAD(h);
      for (struct rtattr* a = IFLA_RTA(i); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == IFLA_IFNAME && strcmp(RTA_DATA(a), name) == 0) found = i->ifi_index;
      }
    }
  }
  CHECK_EQUAL(close(s), 0);
  return found;
}

int main(void) {
  struct ifaddrs* list;
  int seen = 0;
  char name[IF_NAMESIZE];
  CHECK_EQUAL(getifaddrs(&list), 0);
  for (const struct ifaddrs* i = list; i != NULL; i = i->ifa_next) {
    if (strcmp(i->ifa_name, "lo") != 0 || i->ifa_addr == NULL) continue;
    CHECK(i->ifa_flags & IFF_LOOPBACK);
    if (i->ifa_addr->sa_family != AF_INET) continue;
    const struct sockaddr_in* const a = (const struct sockaddr_in*)i->ifa_addr;
    seen += a->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
  }
  freeifaddrs(list);
  CHECK_EQUAL(seen, 1);
  const unsigned index = if_nametoindex("lo");
  CHECK(index > 0);
  CHECK(if_indextoname(index, name) != NULL && strcmp(name, "lo") == 0);
  CHECK_EQUAL(named_by_netlink("lo"), index);
  CHECK(if_nametoindex("nothing") == 0 && errno == ENODEV);
  return succeed();
}
