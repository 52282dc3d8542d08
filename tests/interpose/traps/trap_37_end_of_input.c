// SPDX-License-Identifier: Apache-2.0
// The end of a stream is input too: bytes sent before it are read first, then 0, for every kind of
// half-close; it wakes a blocked reader.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

static int fds[2];

static void* close_later(void* x) {
  sleep_ms(5);
  if (x == NULL) {
    close(fds[1]);
  } else {
    shutdown(fds[1], SHUT_WR);
  }
  return x;
}

int main(void) {
  char bytes[8];
  for (long half = 0; half < 3; ++half) {
    if (half < 2) {
      CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    } else {
      CHECK_EQUAL(pipe(fds), 0);
    }
    CHECK_EQUAL(write(fds[1], "abc", 3), 3);
    const pthread_t t = start(close_later, half == 1 ? &half : NULL);
    CHECK_EQUAL(read(fds[0], bytes, sizeof bytes), 3);
    CHECK_EQUAL(read(fds[0], bytes, sizeof bytes), 0);
    CHECK_EQUAL(read(fds[0], bytes, sizeof bytes), 0);
    join(t);
    if (half == 1) {  // the other direction is open
      CHECK_EQUAL(write(fds[0], "def", 3), 3);
      CHECK_EQUAL(read(fds[1], bytes, sizeof bytes), 3);
      close(fds[1]);
    }
    close(fds[0]);
  }
  return succeed();
}
