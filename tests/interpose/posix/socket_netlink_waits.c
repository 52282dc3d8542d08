// SPDX-License-Identifier: Apache-2.0
// A thread that waits on a netlink socket delays no other, and continues when another thread sends
// a request.
#define _GNU_SOURCE
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/socket.h>

#include "../small.h"

static int fd;
static volatile int asked;

static void* await(void* x) {
  char b[32 * 1024];
  CHECK(recv(fd, b, sizeof b, 0) > 0);
  CHECK_EQUAL(asked, 1);
  return x;
}

int main(void) {
  fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  CHECK(fd >= 0);
  struct pollfd p = {fd, POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 0), 0);
  const pthread_t t = start(await, NULL);
  sleep_ms(20);
  struct {
    struct nlmsghdr header;
    struct rtgenmsg what;
  } request = {{.nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}, {AF_UNSPEC}};
  request.header.nlmsg_len = sizeof request;
  asked = 1;
  CHECK_EQUAL(send(fd, &request, sizeof request, 0), sizeof request);
  join(t);
  return succeed();
}
