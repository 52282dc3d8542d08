// SPDX-License-Identifier: Apache-2.0
// Writes of up to PIPE_BUF bytes by several threads are never mixed.
#define _GNU_SOURCE
#include <limits.h>

#include "../small.h"

enum { kWriters = 3, kRounds = 20 };
static int fds[2];
static void* writer(void* x) {
  char b[PIPE_BUF];
  memset(b, 'a' + (int)(long)x, sizeof b);
  for (int i = 0; i < kRounds; ++i) CHECK_EQUAL(write(fds[1], b, sizeof b), sizeof b);
  return x;
}

int main(void) {
  pthread_t t[kWriters];
  int counts[kWriters] = {0};
  CHECK_EQUAL(pipe(fds), 0);
  for (long i = 0; i < kWriters; ++i) t[i] = start(writer, (void*)i);
  for (int i = 0; i < kWriters * kRounds; ++i) {
    char b[PIPE_BUF];
    for (size_t have = 0; have < sizeof b;) {
      const ssize_t n = read(fds[0], b + have, sizeof b - have);
      CHECK(n > 0);
      have += (size_t)n;
    }
    for (size_t k = 1; k < sizeof b; ++k) CHECK_EQUAL(b[k], b[0]);
    ++counts[b[0] - 'a'];
  }
  for (int i = 0; i < kWriters; ++i) {
    join(t[i]);
    CHECK_EQUAL(counts[i], kRounds);
  }
  return succeed();
}
