// SPDX-License-Identifier: Apache-2.0
// recvmmsg counts messages without bytes, takes later messages, and returns a pending error before
// the bytes.
#include "tcp_loopback.h"

static struct mmsghdr messages[2];
static char bytes[2][16];
static struct iovec vectors[2];

static int receive_two(int fd, int flags) {
  for (int i = 0; i < 2; ++i) {
    vectors[i] = (struct iovec){bytes[i], sizeof bytes[i]};
    messages[i] =
        (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[i], .msg_iovlen = 1}, .msg_len = 99};
  }
  return recvmmsg(fd, messages, 2, flags, NULL);
}

int main(void) {
  int s[2];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
  CHECK_EQUAL(send(s[0], "", 0, 0), 0);
  CHECK_EQUAL(send(s[0], "abc", 3, 0), 3);
  CHECK_EQUAL(receive_two(s[1], MSG_DONTWAIT), 2);
  CHECK(messages[0].msg_len == 0 && messages[1].msg_len == 3);
  CHECK_EQUAL(receive_two(s[1], MSG_DONTWAIT), -1);
  CHECK_EQUAL(errno, EAGAIN);

  struct sockaddr_in a = loopback_at(0);
  socklen_t n = sizeof a;
  const int from = socket(AF_INET, SOCK_DGRAM, 0), to = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK_EQUAL(bind(to, (struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(getsockname(to, (struct sockaddr*)&a, &n), 0);
  CHECK_EQUAL(sendto(from, "", 0, 0, (struct sockaddr*)&a, n), 0);
  CHECK_EQUAL(sendto(from, "abc", 3, 0, (struct sockaddr*)&a, n), 3);
  CHECK_EQUAL(receive_two(to, 0), 2);
  CHECK(messages[0].msg_len == 0 && messages[1].msg_len == 3);

  connected_pair(s);
  CHECK_EQUAL(write(s[0], "xy", 2), 2);
  CHECK_EQUAL(shutdown(s[0], SHUT_WR), 0);
  CHECK_EQUAL(receive_two(s[1], 0), 2);
  CHECK(messages[0].msg_len == 2 && messages[1].msg_len == 0);

  connected_pair(s);
  CHECK_EQUAL(write(s[0], "xy", 2), 2);
  await_level(s[1], POLLIN);
  const struct linger reset = {1, 0};
  CHECK_EQUAL(setsockopt(s[0], SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
  CHECK_EQUAL(close(s[0]), 0);
  await_level(s[1], POLLIN | POLLERR);
  CHECK_EQUAL(receive_two(s[1], 0), -1);
  CHECK_EQUAL(errno, ECONNRESET);
  CHECK_EQUAL(receive_two(s[1], 0), 2);
  CHECK(messages[0].msg_len == 2 && messages[1].msg_len == 0);
  return succeed();
}
