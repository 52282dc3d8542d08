// SPDX-License-Identifier: Apache-2.0
// native: no
// Links, addresses and routes belong to the machine: netlink requests that change them are refused,
// also after others and in pieces, and so are sockets of netfilter and xfrm. Queries are permitted.
#define _GNU_SOURCE
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../small.h"

struct Request {
  struct nlmsghdr head;
  struct rtgenmsg body;
};

// About a link that does not exist.
static struct Request request_of(int type) {
  struct Request r;
  memset(&r, 0, sizeof r);
  r.head.nlmsg_len = NLMSG_LENGTH(sizeof r.body);
  r.head.nlmsg_type = (unsigned short)type;
  r.head.nlmsg_flags = NLM_F_REQUEST | (type == RTM_GETLINK ? NLM_F_DUMP : NLM_F_ACK);
  r.body.rtgen_family = AF_UNSPEC;
  return r;
}

static void refused(ssize_t result) { CHECK(result == -1 && errno == EPERM); }

int main(void) {
  const int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  CHECK(s >= 0);
  const int changes[] = {RTM_NEWLINK,  RTM_DELLINK,  RTM_SETLINK, RTM_NEWADDR,
                         RTM_DELROUTE, RTM_NEWNEIGH, RTM_DELRULE};
  struct Request both[2] = {request_of(RTM_GETLINK), request_of(RTM_DELADDR)};
  for (unsigned i = 0; i < sizeof changes / sizeof changes[0]; ++i) {
    const struct Request r = request_of(changes[i]);
    refused(send(s, &r, r.head.nlmsg_len, 0));
    refused(write(s, &r, r.head.nlmsg_len));
  }
  refused(send(s, both, sizeof both, 0));
  struct iovec pieces[] = {{both, 5}, {(char*)both + 5, sizeof both - 5}};
  struct msghdr m = {.msg_iov = pieces, .msg_iovlen = 2};
  refused(sendmsg(s, &m, 0));
  CHECK(send(s, (void*)8, sizeof both, 0) == -1 && errno == EFAULT);
  CHECK_EQUAL(send(s, both, both[0].head.nlmsg_len, 0), both[0].head.nlmsg_len);
  char b[8192];
  CHECK(recv(s, b, sizeof b, 0) > 0);
  CHECK_EQUAL(((struct nlmsghdr*)b)->nlmsg_type, RTM_NEWLINK);
  CHECK(socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER) == -1 && errno == EPROTONOSUPPORT);
  CHECK(socket(AF_NETLINK, SOCK_RAW, NETLINK_XFRM) == -1 && errno == EPROTONOSUPPORT);
  return succeed();
}
