// SPDX-License-Identifier: Apache-2.0
// A handler without SA_RESTART ends a blocked read with EINTR; with it the read continues.
#define _GNU_SOURCE
#include "../small.h"

static volatile sig_atomic_t caught;
static pthread_t reader;
static int fds[2];
static void note(int signo) { caught = signo; }
static void* disturber(void* x) {
  sleep_ms(10);
  CHECK_EQUAL(pthread_kill(reader, SIGUSR1), 0);
  sleep_ms(10);
  CHECK_EQUAL(write(fds[1], "x", 1), 1);
  return x;
}

int main(void) {
  char b[4];
  reader = pthread_self();
  CHECK_EQUAL(pipe(fds), 0);
  handle(SIGUSR1, note, 0);
  pthread_t t = start(disturber, NULL);
  CHECK_EQUAL(read(fds[0], b, sizeof b), -1);
  CHECK_EQUAL(errno, EINTR);
  CHECK_EQUAL(caught, SIGUSR1);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 1);
  join(t);
  caught = 0;
  handle(SIGUSR1, note, SA_RESTART);
  t = start(disturber, NULL);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 1);
  CHECK_EQUAL(caught, SIGUSR1);
  join(t);
  return succeed();
}
