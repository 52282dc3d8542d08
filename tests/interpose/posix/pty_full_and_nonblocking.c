// SPDX-License-Identifier: Apache-2.0
// Each direction holds a bounded number of bytes: then a write waits, or fails with EAGAIN; all
// accepted bytes arrive in order.
#include "../terminal.h"

static int from, to;
static size_t fill(int fd) {
  size_t size = 0;
  for (unsigned char c = 0;; c = (unsigned char)(c + 1)) {
    if (write(fd, &c, 1) != 1) break;
    ++size;
  }
  CHECK_EQUAL(errno, EAGAIN);
  return size;
}

static void* write_waiting(void* rest) {
  (void)rest;
  CHECK_EQUAL(write(from, "the rest", 8), 8);
  return NULL;
}

static void one_way(void) {
  unsigned char b[512];
  CHECK_EQUAL(fcntl(from, F_SETFL, O_RDWR | O_NONBLOCK), 0);
  CHECK_EQUAL(fcntl(to, F_SETFL, O_RDWR | O_NONBLOCK), 0);
  CHECK_EQUAL(read(to, b, sizeof b), -1);
  CHECK_EQUAL(errno, EAGAIN);
  size_t left = fill(from);
  CHECK(left >= 4095);
  CHECK_EQUAL(events_of(from) & POLLOUT, 0);
  CHECK_EQUAL(events_of(to) & POLLIN, POLLIN);
  CHECK_EQUAL(fcntl(from, F_SETFL, O_RDWR), 0);
  CHECK_EQUAL(fcntl(to, F_SETFL, O_RDWR), 0);
  const pthread_t t = start(write_waiting, NULL);
  unsigned char next = 0;
  while (left > 0) {
    const ssize_t n = read(to, b, left < sizeof b ? left : sizeof b);
    CHECK(n > 0);
    for (ssize_t i = 0; i < n; ++i, ++next) CHECK_EQUAL(b[i], next);
    left -= (size_t)n;
  }
  for (size_t size = 0; size < 8;) size += (size_t)read(to, b + size, 8 - size);
  CHECK_EQUAL(memcmp(b, "the rest", 8), 0);
  join(t);
}

int main(void) {
  int master, line;
  open_pair(&master, &line);
  make_raw(line);
  from = master;
  to = line;
  one_way();
  from = line;
  to = master;
  one_way();
  return succeed();
}
