// SPDX-License-Identifier: Apache-2.0
// Two threads that poll one pipe both wake when it becomes readable, and so does a third in select;
// no thread has to read first.
#define _GNU_SOURCE
#include <poll.h>
#include <sys/select.h>

#include "../small.h"

static int fds[2];

static void* polls(void* unused) {
  (void)unused;
  struct pollfd p = {fds[0], POLLIN, 0};
  return (void*)(long)poll(&p, 1, -1);
}

static void* selects(void* unused) {
  (void)unused;
  fd_set in;
  FD_ZERO(&in);
  FD_SET(fds[0], &in);
  return (void*)(long)select(fds[0] + 1, &in, NULL, NULL, NULL);
}

int main(void) {
  CHECK_EQUAL(pipe(fds), 0);
  const pthread_t a = start(polls, NULL), b = start(polls, NULL), c = start(selects, NULL);
  sleep_ms(3);
  CHECK_EQUAL(write(fds[1], "x", 1), 1);
  CHECK_EQUAL(join(a), 1);
  CHECK_EQUAL(join(b), 1);
  CHECK_EQUAL(join(c), 1);
  return succeed();
}
