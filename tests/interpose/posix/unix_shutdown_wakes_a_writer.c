// SPDX-License-Identifier: Apache-2.0
// A thread that waits for room in a stream socket wakes with EPIPE when its own end is shut down
// for writing, or the other end for reading.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

static int s[2];

static void* writes(void* unused) {
  (void)unused;
  static char b[65536];
  ssize_t n;
  while ((n = send(s[0], b, sizeof b, MSG_NOSIGNAL)) > 0) {
  }
  return (void*)(long)(n == -1 ? errno : 0);
}

int main(void) {
  for (int side = 0; side < 2; ++side) {
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    const pthread_t t = start(writes, NULL);
    sleep_ms(3);
    CHECK_EQUAL(shutdown(s[side], side == 0 ? SHUT_WR : SHUT_RD), 0);
    CHECK_EQUAL(join(t), EPIPE);
    CHECK_EQUAL(close(s[0]), 0);
    CHECK_EQUAL(close(s[1]), 0);
  }
  return succeed();
}
