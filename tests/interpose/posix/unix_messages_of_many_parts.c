// SPDX-License-Identifier: Apache-2.0
// sendmsg and recvmsg with up to IOV_MAX parts; sendto with an address on a connected stream is
// EISCONN, sendmsg of bad memory EFAULT.
#define _GNU_SOURCE
#include <limits.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  static struct iovec v[IOV_MAX + 1], w[IOV_MAX];
  static char out[IOV_MAX + 1], in[IOV_MAX];
  int s[2];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  for (int i = 0; i <= IOV_MAX; ++i) {
    out[i] = (char)i;
    v[i] = (struct iovec){out + i, 1};
    if (i < IOV_MAX) w[i] = (struct iovec){in + IOV_MAX - 1 - i, 1};
  }
  struct msghdr m = {.msg_iov = v};
  FAILS(writev(s[0], v, IOV_MAX + 1), EINVAL);
  m.msg_iovlen = IOV_MAX;
  CHECK_EQUAL(sendmsg(s[0], &m, 0), IOV_MAX);
  m.msg_iov = w;
  CHECK_EQUAL(recvmsg(s[1], &m, MSG_WAITALL), IOV_MAX);
  for (int i = 0; i < IOV_MAX; ++i) CHECK_EQUAL(in[IOV_MAX - 1 - i], out[i]);
  const struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "/not/there"};
  FAILS(sendto(s[0], "x", 1, 0, (const struct sockaddr*)&a, sizeof a), EISCONN);
  void* const nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  FAILS(send(s[0], nowhere, 10, 0), EFAULT);
  CHECK_EQUAL(send(s[0], "ab", 2, 0), 2);
  FAILS(recv(s[1], nowhere, 10, 0), EFAULT);
  CHECK_EQUAL(recv(s[1], in, 10, 0), 2);
  return succeed();
}
