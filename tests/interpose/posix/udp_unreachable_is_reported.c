// SPDX-License-Identifier: Apache-2.0
// A connected UDP socket gets ECONNREFUSED, once, if the other port has no socket.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t n = sizeof a;
  const int gone = socket(AF_INET, SOCK_DGRAM, 0), s = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK_EQUAL(bind(gone, (struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(getsockname(gone, (struct sockaddr*)&a, &n), 0);
  CHECK_EQUAL(connect(s, (struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(close(gone), 0);
  CHECK_EQUAL(send(s, "x", 1, 0), 1);
  struct pollfd p = {s, POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 1000), 1);
  CHECK_EQUAL(p.revents & POLLERR, POLLERR);
  char b;
  CHECK(recv(s, &b, 1, MSG_DONTWAIT) == -1 && errno == ECONNREFUSED);
  CHECK(recv(s, &b, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
  CHECK_EQUAL(send(s, "x", 1, 0), 1);
  CHECK_EQUAL(poll(&p, 1, 1000), 1);
  int error = 0;
  n = sizeof error;
  CHECK_EQUAL(getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &n), 0);
  CHECK_EQUAL(error, ECONNREFUSED);
  CHECK_EQUAL(getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &n), 0);
  CHECK_EQUAL(error, 0);
  return succeed();
}
