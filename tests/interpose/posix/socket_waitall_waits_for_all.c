// SPDX-License-Identifier: Apache-2.0
// MSG_WAITALL blocks until all bytes have arrived, or until the stream ends.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

static void* writer(void* x) {
  const int to = (int)(long)x;
  for (const char* p = "abcdefgh"; *p != 0; ++p) {
    sleep_ms(2);
    CHECK_EQUAL(write(to, p, 1), 1);
  }
  CHECK_EQUAL(shutdown(to, SHUT_WR), 0);
  return x;
}

int main(void) {
  int fds[2];
  char b[8];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const pthread_t t = start(writer, (void*)(long)fds[0]);
  CHECK_EQUAL(recv(fds[1], b, 5, MSG_WAITALL), 5);
  CHECK_EQUAL(memcmp(b, "abcde", 5), 0);
  CHECK_EQUAL(recv(fds[1], b, sizeof b, MSG_WAITALL), 3);
  CHECK_EQUAL(recv(fds[1], b, sizeof b, MSG_WAITALL), 0);
  join(t);
  return succeed();
}
