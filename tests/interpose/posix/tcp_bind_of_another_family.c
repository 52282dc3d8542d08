// SPDX-License-Identifier: Apache-2.0
// bind and connect with an address of another family: EAFNOSUPPORT, for TCP and UDP.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  struct sockaddr_in a = {.sin_family = AF_INET6, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const struct sockaddr* const at = (const struct sockaddr*)&a;
  const int s = socket(AF_INET, SOCK_STREAM, 0), u = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK(bind(s, at, sizeof a) == -1 && errno == EAFNOSUPPORT);
  CHECK(bind(u, at, sizeof a) == -1 && errno == EAFNOSUPPORT);
  a.sin_port = htons(9);
  CHECK(connect(s, at, sizeof a) == -1 && errno == EAFNOSUPPORT);
  CHECK(connect(u, at, sizeof a) == -1 && errno == EAFNOSUPPORT);
  return succeed();
}
