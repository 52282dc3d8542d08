// SPDX-License-Identifier: Apache-2.0
// With SO_RCVLOWAT a read blocks until that many bytes have arrived.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

static void* writer(void* x) {
  const int to = (int)(long)x;
  for (int i = 0; i < 4; ++i) {
    sleep_ms(5);
    CHECK_EQUAL(write(to, "ab", 2), 2);
  }
  return x;
}

int main(void) {
  int fds[2], mark = 7, got = 0;
  socklen_t size = sizeof got;
  char b[16];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  CHECK_EQUAL(setsockopt(fds[1], SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark), 0);
  CHECK_EQUAL(getsockopt(fds[1], SOL_SOCKET, SO_RCVLOWAT, &got, &size), 0);
  CHECK_EQUAL(got, 7);
  const pthread_t t = start(writer, (void*)(long)fds[0]);
  const ssize_t n = recv(fds[1], b, sizeof b, 0);
  CHECK_EQUAL(n, 8);
  join(t);
  return succeed();
}
