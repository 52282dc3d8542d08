// SPDX-License-Identifier: Apache-2.0
// sendmmsg and recvmmsg transfer several messages, return the length of each, and with
// MSG_WAITFORONE take those that have arrived.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int s[2];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
  struct mmsghdr m[4];
  struct iovec v[4];
  char b[4][8];
  const char* const text[] = {"a", "bb", "ccc", "dddd"};
  memset(m, 0, sizeof m);
  for (int i = 0; i < 4; ++i) {
    v[i] = (struct iovec){(void*)text[i], strlen(text[i])};
    m[i].msg_hdr.msg_iov = &v[i];
    m[i].msg_hdr.msg_iovlen = 1;
  }
  CHECK_EQUAL(sendmmsg(s[0], m, 4, 0), 4);
  for (int i = 0; i < 4; ++i) CHECK_EQUAL(m[i].msg_len, strlen(text[i]));
  for (int i = 0; i < 4; ++i) v[i] = (struct iovec){b[i], sizeof b[i]};
  CHECK_EQUAL(recvmmsg(s[1], m, 2, 0, NULL), 2);
  CHECK(m[0].msg_len == 1 && m[1].msg_len == 2 && memcmp(b[1], "bb", 2) == 0);
  CHECK_EQUAL(recvmmsg(s[1], m, 4, MSG_WAITFORONE, NULL), 2);
  CHECK(m[0].msg_len == 3 && m[1].msg_len == 4);
  CHECK_EQUAL(recvmmsg(s[1], m, 4, MSG_DONTWAIT, NULL), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(recvmmsg(s[1], m, 0, 0, NULL), 0);
  return succeed();
}
