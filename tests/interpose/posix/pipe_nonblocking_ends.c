// SPDX-License-Identifier: Apache-2.0
// A nonblocking end returns EAGAIN where it would block; the other end still blocks.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../small.h"

static void* writer(void* x) {
  sleep_ms(10);
  CHECK_EQUAL(write((int)(long)x, "z", 1), 1);
  return x;
}

int main(void) {
  static char block[4096];
  int fds[2];
  size_t total = 0;
  CHECK_EQUAL(pipe2(fds, O_NONBLOCK), 0);
  CHECK_EQUAL(read(fds[0], block, 1), -1);
  CHECK_EQUAL(errno, EAGAIN);
  for (ssize_t n; (n = write(fds[1], block, sizeof block)) > 0;) total += (size_t)n;
  CHECK_EQUAL(errno, EAGAIN);
  CHECK(total >= sizeof block);
  while (total > 0) {
    const ssize_t n = read(fds[0], block, sizeof block);
    CHECK(n > 0);
    total -= (size_t)n;
  }
  CHECK_EQUAL(fcntl(fds[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  CHECK_EQUAL(fcntl(fds[0], F_SETFL, 0), 0);
  const pthread_t t = start(writer, (void*)(long)fds[1]);
  CHECK_EQUAL(read(fds[0], block, sizeof block), 1);
  CHECK_EQUAL(block[0], 'z');
  join(t);
  return succeed();
}
