// SPDX-License-Identifier: Apache-2.0
// SO_RCVLOWAT of an unconnected TCP socket reads back; a value of 0 counts as 1.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  int v = -1;
  socklen_t n = sizeof v;
  CHECK_EQUAL(getsockopt(s, SOL_SOCKET, SO_RCVLOWAT, &v, &n), 0);
  CHECK_EQUAL(v, 1);
  v = 10;
  CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_RCVLOWAT, &v, sizeof v), 0);
  v = 0;
  CHECK_EQUAL(getsockopt(s, SOL_SOCKET, SO_RCVLOWAT, &v, &n), 0);
  CHECK_EQUAL(v, 10);
  v = 0;
  CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_RCVLOWAT, &v, sizeof v), 0);
  CHECK_EQUAL(getsockopt(s, SOL_SOCKET, SO_RCVLOWAT, &v, &n), 0);
  CHECK_EQUAL(v, 1);
  return succeed();
}
