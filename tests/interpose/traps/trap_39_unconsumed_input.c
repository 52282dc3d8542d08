// SPDX-License-Identifier: Apache-2.0
// Unread input stalls no thread: a stream is closed with unread bytes, and others continue.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  char bytes[4];
  int a[2], b[2], p[2];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, a), 0);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, b), 0);
  CHECK_EQUAL(pipe(p), 0);
  CHECK_EQUAL(write(a[1], "unread", 6), 6);
  CHECK_EQUAL(write(p[1], "unread", 6), 6);
  CHECK_EQUAL(write(b[1], "read", 4), 4);
  CHECK_EQUAL(read(b[0], bytes, 4), 4);
  close(a[0]);
  close(p[0]);
  signal(SIGPIPE, SIG_IGN);
  CHECK_EQUAL(write(p[1], "more", 4), -1);
  CHECK_EQUAL(errno, EPIPE);
  CHECK_EQUAL(send(a[1], "more", 4, MSG_NOSIGNAL), -1);
  CHECK(errno == EPIPE || errno == ECONNRESET);
  CHECK_EQUAL(write(b[1], "read", 4), 4);
  CHECK_EQUAL(read(b[0], bytes, 4), 4);
  return succeed();
}
