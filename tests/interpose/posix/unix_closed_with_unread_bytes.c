// SPDX-License-Identifier: Apache-2.0
// A stream end that closes with unread bytes resets the other one: its next read fails with
// ECONNRESET, then the end; a write to it fails with EPIPE.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int s[2];
  char b[8];
  signal(SIGPIPE, SIG_IGN);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  CHECK_EQUAL(write(s[0], "unread", 6), 6);
  CHECK_EQUAL(close(s[1]), 0);
  CHECK_EQUAL(read(s[0], b, sizeof b), -1);
  CHECK_EQUAL(errno, ECONNRESET);
  CHECK_EQUAL(read(s[0], b, sizeof b), 0);
  CHECK_EQUAL(write(s[0], "x", 1), -1);
  CHECK_EQUAL(errno, EPIPE);
  return succeed();
}
