// SPDX-License-Identifier: Apache-2.0
// sendmsg and recvmsg with more than IOV_MAX parts fail with EMSGSIZE.
#define _GNU_SOURCE
#include <limits.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "../small.h"

int main(void) {
  static struct iovec v[IOV_MAX + 1];
  int s[2];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  struct msghdr m = {.msg_iov = v, .msg_iovlen = IOV_MAX + 1};
  CHECK(sendmsg(s[0], &m, 0) == -1 && errno == EMSGSIZE);
  CHECK(recvmsg(s[0], &m, MSG_DONTWAIT) == -1 && errno == EMSGSIZE);
  return succeed();
}
