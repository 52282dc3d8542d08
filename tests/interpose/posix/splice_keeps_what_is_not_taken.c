// SPDX-License-Identifier: Apache-2.0
// splice from a pipe to a socket that is full or broken fails, and the bytes stay in the pipe.
#define _GNU_SOURCE
#include "tcp_loopback.h"

static void fill(int fd) {
  static const char block[4096];
  while (send(fd, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  CHECK_EQUAL(errno, EAGAIN);
}

// Fills both ends, because TCP moves bytes from one to the other.
static void fill_to_the_end(int fd) {
  do {
    fill(fd);
    sleep_ms(1);
  } while (level_of(fd, POLLOUT) != 0);
}

static void keeps(int out, int error) {
  int p[2];
  char b[16];
  CHECK_EQUAL(pipe(p), 0);
  CHECK_EQUAL(write(p[1], "kept here", 9), 9);
  CHECK_EQUAL(fcntl(out, F_SETFL, O_NONBLOCK), 0);
  CHECK_EQUAL(splice(p[0], NULL, out, NULL, 9, 0), -1);
  CHECK_EQUAL(errno, error);
  CHECK_EQUAL(read(p[0], b, sizeof b), 9);
  CHECK_EQUAL(memcmp(b, "kept here", 9), 0);
  CHECK_EQUAL(close(p[0]), 0);
  CHECK_EQUAL(close(p[1]), 0);
}

int main(void) {
  int s[2];
  signal(SIGPIPE, SIG_IGN);
  connected_pair(s);
  fill_to_the_end(s[0]);
  keeps(s[0], EAGAIN);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  fill(s[0]);
  keeps(s[0], EAGAIN);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  CHECK_EQUAL(close(s[1]), 0);
  keeps(s[0], EPIPE);
  return succeed();
}
