// SPDX-License-Identifier: Apache-2.0
// A writer that waits for room gets EPIPE when the last reader closes.
#define _GNU_SOURCE
#include "../small.h"

static char much[1 << 20];
static void* writer(void* x) {
  const int to = (int)(long)x;
  ssize_t n;
  while ((n = write(to, much, sizeof much)) > 0) {
  }
  CHECK_EQUAL(n, -1);
  CHECK_EQUAL(errno, EPIPE);
  return x;
}

int main(void) {
  int fds[2];
  char c;
  handle(SIGPIPE, SIG_IGN, 0);
  CHECK_EQUAL(pipe(fds), 0);
  const pthread_t t = start(writer, (void*)(long)fds[1]);
  CHECK_EQUAL(read(fds[0], &c, 1), 1);
  sleep_ms(10);
  close(fds[0]);
  join(t);
  return succeed();
}
