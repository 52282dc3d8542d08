// SPDX-License-Identifier: Apache-2.0
// shutdown of a thread's own direction, or of the other end's, wakes a thread that waits in a read,
// which sees the end.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

static int s[2];

static void* reads(void* unused) {
  (void)unused;
  char b;
  return (void*)read(s[0], &b, 1);
}

int main(void) {
  for (int side = 0; side < 2; ++side) {
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    const pthread_t t = start(reads, NULL);
    sleep_ms(3);
    CHECK_EQUAL(shutdown(s[side], side == 0 ? SHUT_RD : SHUT_WR), 0);
    CHECK_EQUAL(join(t), 0);
    CHECK_EQUAL(close(s[0]), 0);
    CHECK_EQUAL(close(s[1]), 0);
  }
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  CHECK_EQUAL(shutdown(s[1], 77), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
