// SPDX-License-Identifier: Apache-2.0
// A listener at :: also accepts IPv4 and reserves its port from IPv4, unless IPV6_V6ONLY is set.
#include "tcp_loopback.h"

static int bind_six(int only, int port, int* got) {
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  CHECK_EQUAL(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only), 0);
  struct sockaddr_in6 a;
  memset(&a, 0, sizeof a);
  a.sin6_family = AF_INET6;
  a.sin6_port = htons((uint16_t)port);
  CHECK_EQUAL(bind(fd, (struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(listen(fd, 4), 0);
  socklen_t n = sizeof a;
  CHECK_EQUAL(getsockname(fd, (struct sockaddr*)&a, &n), 0);
  *got = ntohs(a.sin6_port);
  return fd;
}

static int bind_four(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in a = loopback_at(port);
  a.sin_addr.s_addr = htonl(INADDR_ANY);
  if (bind(fd, (struct sockaddr*)&a, sizeof a) == 0 && listen(fd, 4) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int main(void) {
  int port = 0;
  int six = bind_six(0, 0, &port);
  CHECK_EQUAL(bind_four(port), -1);
  CHECK_EQUAL(errno, EADDRINUSE);
  int client = connect_to(port);
  struct sockaddr_in6 peer;
  socklen_t n = sizeof peer;
  int served = accept(six, (struct sockaddr*)&peer, &n);
  CHECK(served >= 0);
  CHECK_EQUAL(peer.sin6_family, AF_INET6);
  CHECK_EQUAL(IN6_IS_ADDR_V4MAPPED(&peer.sin6_addr) != 0, 1);
  close(client);
  close(served);
  close(six);

  six = bind_six(1, 0, &port);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_EQUAL(try_connect(fd, port), -1);
  CHECK_EQUAL(errno, ECONNREFUSED);
  close(fd);
  const int four = bind_four(port);
  CHECK(four >= 0);
  client = connect_to(port);
  n = sizeof peer;
  served = accept(four, (struct sockaddr*)&peer, &n);
  CHECK_EQUAL(peer.sin6_family, AF_INET);
  struct sockaddr_in6 to;
  memset(&to, 0, sizeof to);
  to.sin6_family = AF_INET6;
  to.sin6_port = htons((uint16_t)port);
  to.sin6_addr = in6addr_loopback;
  const int third = socket(AF_INET6, SOCK_STREAM, 0);
  CHECK_EQUAL(connect(third, (struct sockaddr*)&to, sizeof to), 0);
  CHECK(accept(six, NULL, NULL) >= 0);
  return succeed();
}
