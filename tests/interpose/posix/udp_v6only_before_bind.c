// SPDX-License-Identifier: Apache-2.0
// IPV6_V6ONLY can only be changed before bind; afterwards it fails with EINVAL and does not change.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../small.h"

static void check(int kind) {
  struct sockaddr_in6 a = {.sin6_family = AF_INET6};
  const int s = socket(AF_INET6, kind, 0), on = 1;
  if (s < 0) return;
  int off = 0;
  socklen_t n = sizeof off;
  CHECK_EQUAL(setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on), 0);
  CHECK_EQUAL(bind(s, (struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(getsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, &n), 0);
  CHECK_EQUAL(off, 1);
}

int main(void) {
  check(SOCK_STREAM);
  check(SOCK_DGRAM);
  return succeed();
}
