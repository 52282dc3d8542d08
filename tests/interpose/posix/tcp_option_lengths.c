// SPDX-License-Identifier: Apache-2.0
// setsockopt refuses values that are too short, and keep-alive times that are too long.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  int v = 1, w = 40000;
  CHECK(setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &v, 1) == -1 && errno == EINVAL);
  CHECK(setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &v, 1) == -1 && errno == EINVAL);
  CHECK(setsockopt(s, IPPROTO_TCP, TCP_KEEPIDLE, &w, sizeof w) == -1 && errno == EINVAL);
  return succeed();
}
