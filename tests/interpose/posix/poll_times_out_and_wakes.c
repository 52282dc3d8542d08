// SPDX-License-Identifier: Apache-2.0
// poll lasts its time if no event comes, and ends when one does.
#define _GNU_SOURCE
#include <poll.h>

#include "../small.h"

static void* writer(void* x) {
  sleep_ms(10);
  CHECK_EQUAL(write((int)(long)x, "x", 1), 1);
  return x;
}

int main(void) {
  int a[2], b[2];
  CHECK_EQUAL(pipe(a), 0);
  CHECK_EQUAL(pipe(b), 0);
  struct pollfd p[2] = {{a[0], POLLIN, 0}, {b[0], POLLIN, 0}};
  const long long begin = now_ns(CLOCK_MONOTONIC);
  CHECK_EQUAL(poll(p, 2, 20), 0);
  CHECK(now_ns(CLOCK_MONOTONIC) - begin >= 20 * MS);
  const pthread_t t = start(writer, (void*)(long)b[1]);
  CHECK_EQUAL(poll(p, 2, -1), 1);
  CHECK_EQUAL(p[0].revents, 0);
  CHECK_EQUAL(p[1].revents, POLLIN);
  join(t);
  return succeed();
}
