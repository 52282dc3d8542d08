// SPDX-License-Identifier: Apache-2.0
// Connecting a UDP socket to AF_UNSPEC undoes the effects of connect: the address and, if it was
// chosen automatically, the port.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "../small.h"

typedef struct sockaddr_in In;

static In name_of(int fd) {
  In a;
  socklen_t n = sizeof a;
  CHECK_EQUAL(getsockname(fd, (struct sockaddr*)&a, &n), 0);
  return a;
}

static int connected(int fd, const In* to) {
  return connect(fd, (const struct sockaddr*)to, sizeof *to);
}

int main(void) {
  In to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, mine;
  const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
  const int target = socket(AF_INET, SOCK_DGRAM, 0), a = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK_EQUAL(bind(target, (const struct sockaddr*)&to, sizeof to), 0);
  to = name_of(target);
  for (int i = 0; i < 2; ++i) {
    CHECK_EQUAL(connected(a, &to), 0);
    mine = name_of(a);
    CHECK_EQUAL(ntohl(mine.sin_addr.s_addr), INADDR_LOOPBACK);
    CHECK(mine.sin_port != 0);
    CHECK_EQUAL(connect(a, &nobody, sizeof nobody), 0);
    In after = name_of(a);
    CHECK_EQUAL(after.sin_addr.s_addr, 0);
    CHECK_EQUAL(after.sin_port, 0);
    socklen_t n = sizeof after;
    CHECK_EQUAL(getpeername(a, (struct sockaddr*)&after, &n), -1);
    CHECK_EQUAL(errno, ENOTCONN);
  }
  // The released port is chosen explicitly this time, and stays.
  mine.sin_addr.s_addr = htonl(INADDR_ANY);
  CHECK_EQUAL(bind(a, (const struct sockaddr*)&mine, sizeof mine), 0);
  CHECK_EQUAL(connected(a, &to), 0);
  CHECK_EQUAL(ntohl(name_of(a).sin_addr.s_addr), INADDR_LOOPBACK);
  CHECK_EQUAL(connect(a, &nobody, sizeof nobody), 0);
  CHECK_EQUAL(name_of(a).sin_addr.s_addr, 0);
  CHECK_EQUAL(name_of(a).sin_port, mine.sin_port);
  CHECK_EQUAL(send(a, "x", 1, 0), -1);
  CHECK_EQUAL(errno, EDESTADDRREQ);
  return succeed();
}
