// SPDX-License-Identifier: Apache-2.0
// A program connects to its own listener, by each of its addresses: bytes pass in both directions,
// names match, and the end of one side is the end of file of the other.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "../small.h"

static void talk(int family, const char* listen_at, const char* connect_to) {
  struct sockaddr_storage at, to, mine, theirs;
  memset(&at, 0, sizeof at);
  memset(&to, 0, sizeof to);
  at.ss_family = to.ss_family = (sa_family_t)family;
  void* const at_ip = family == AF_INET ? (void*)&((struct sockaddr_in*)&at)->sin_addr
                                        : (void*)&((struct sockaddr_in6*)&at)->sin6_addr;
  CHECK_EQUAL(inet_pton(family, listen_at, at_ip), 1);
  const socklen_t size =
      family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
  const int listener = socket(family, SOCK_STREAM, 0);
  CHECK(listener >= 0);
  CHECK_EQUAL(bind(listener, (struct sockaddr*)&at, size), 0);
  CHECK_EQUAL(listen(listener, 5), 0);
  socklen_t n = sizeof to;
  CHECK_EQUAL(getsockname(listener, (struct sockaddr*)&to, &n), 0);
  void* const to_ip = family == AF_INET ? (void*)&((struct sockaddr_in*)&to)->sin_addr
                                        : (void*)&((struct sockaddr_in6*)&to)->sin6_addr;
  CHECK_EQUAL(inet_pton(family, connect_to, to_ip), 1);

  const int client = socket(family, SOCK_STREAM, 0);
  CHECK_EQUAL(connect(client, (struct sockaddr*)&to, size), 0);
  n = sizeof theirs;
  const int served = accept(listener, (struct sockaddr*)&theirs, &n);
  CHECK(served >= 0);
  CHECK_EQUAL(n, size);
  n = sizeof mine;
  CHECK_EQUAL(getsockname(client, (struct sockaddr*)&mine, &n), 0);
  CHECK_EQUAL(memcmp(&mine, &theirs, size), 0);
  n = sizeof mine;
  CHECK_EQUAL(getsockname(served, (struct sockaddr*)&mine, &n), 0);
  n = sizeof theirs;
  CHECK_EQUAL(getpeername(client, (struct sockaddr*)&theirs, &n), 0);
  CHECK_EQUAL(memcmp(&mine, &theirs, size), 0);
  CHECK(((struct sockaddr_in*)&mine)->sin_port == ((struct sockaddr_in*)&to)->sin_port);

  char b[8] = {0};
  CHECK_EQUAL(send(client, "ping", 4, 0), 4);
  CHECK_EQUAL(recv(served, b, sizeof b, 0), 4);
  CHECK_EQUAL(memcmp(b, "ping", 4), 0);
  CHECK_EQUAL(write(served, "pong!", 5), 5);
  CHECK_EQUAL(recv(client, b, 2, MSG_PEEK), 2);
  CHECK_EQUAL(read(client, b, sizeof b), 5);
  CHECK_EQUAL(memcmp(b, "pong!", 5), 0);
  CHECK_EQUAL(shutdown(client, SHUT_WR), 0);
  CHECK_EQUAL(recv(served, b, sizeof b, 0), 0);
  CHECK_EQUAL(send(served, "x", 1, 0), 1);
  CHECK_EQUAL(close(served), 0);
  CHECK_EQUAL(recv(client, b, sizeof b, 0), 1);
  CHECK_EQUAL(recv(client, b, sizeof b, 0), 0);
  CHECK_EQUAL(close(client), 0);
  CHECK_EQUAL(close(listener), 0);
}

int main(void) {
  talk(AF_INET, "127.0.0.1", "127.0.0.1");
  talk(AF_INET, "127.0.0.2", "127.0.0.2");
  talk(AF_INET, "0.0.0.0", "127.0.0.1");
  talk(AF_INET, "0.0.0.0", "127.1.2.3");
  talk(AF_INET, "0.0.0.0", "0.0.0.0");
  talk(AF_INET6, "::1", "::1");
  talk(AF_INET6, "::", "::1");
  talk(AF_INET6, "::", "::");
  talk(AF_INET6, "::", "::ffff:127.0.0.1");
  talk(AF_INET6, "::ffff:127.0.0.1", "::ffff:127.0.0.1");
  return succeed();
}
