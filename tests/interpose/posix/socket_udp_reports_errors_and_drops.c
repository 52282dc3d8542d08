// SPDX-License-Identifier: Apache-2.0
// IP_RECVERR, SO_RXQ_OVFL and SO_TIMESTAMPNS read back where the system has them, and the error
// queue is empty at first.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../small.h"

static void back(int s, int level, int option) {
  int v = -1, on = 1;
  socklen_t n = sizeof v;
  if (setsockopt(s, level, option, &on, sizeof on) < 0) {
    CHECK(errno == ENOPROTOOPT && option != SO_TIMESTAMPNS);
    return;
  }
  n = sizeof v;
  CHECK_EQUAL(getsockopt(s, level, option, &v, &n), 0);
  CHECK_EQUAL(v, 1);
}

int main(void) {
  const int s = socket(AF_INET, SOCK_DGRAM, 0);
  char b[8];
  CHECK(recv(s, b, sizeof b, MSG_ERRQUEUE) == -1 && errno == EAGAIN);
  back(s, IPPROTO_IP, IP_RECVERR);
  back(s, SOL_SOCKET, SO_RXQ_OVFL);
  back(s, SOL_SOCKET, SO_TIMESTAMPNS);
  return succeed();
}
