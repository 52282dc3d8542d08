// SPDX-License-Identifier: Apache-2.0
// A read of an empty pipe or eventfd blocks until another thread writes.
#define _GNU_SOURCE
#include <sys/eventfd.h>

#include "../small.h"

static int from, to;

static void* write_later(void* x) {
  const uint64_t word = 7;
  sleep_ms(5);
  CHECK_EQUAL(write(to, &word, sizeof word), sizeof word);
  return x;
}

static void read_blocks(void) {
  uint64_t word = 0;
  const pthread_t t = start(write_later, NULL);
  CHECK_EQUAL(read(from, &word, sizeof word), sizeof word);
  CHECK_EQUAL(word, 7);
  join(t);
}

int main(void) {
  int fds[2];
  CHECK_EQUAL(pipe(fds), 0);
  from = fds[0];
  to = fds[1];
  read_blocks();
  from = to = eventfd(0, 0);
  read_blocks();
  return succeed();
}
