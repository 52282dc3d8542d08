// SPDX-License-Identifier: Apache-2.0
// A write larger than the pipe blocks until a reader has taken enough; every byte arrives.
#define _GNU_SOURCE
#include "../small.h"

enum { kBytes = 300000 };
static void* writer(void* x) {
  char* b = malloc(kBytes);
  for (int i = 0; i < kBytes; ++i) b[i] = (char)(i * 7);
  CHECK_EQUAL(write((int)(long)x, b, kBytes), kBytes);
  close((int)(long)x);
  free(b);
  return x;
}

int main(void) {
  int fds[2], have = 0;
  char b[1000];
  CHECK_EQUAL(pipe(fds), 0);
  const pthread_t t = start(writer, (void*)(long)fds[1]);
  for (ssize_t n; (n = read(fds[0], b, sizeof b)) != 0;) {
    CHECK(n > 0);
    for (ssize_t i = 0; i < n; ++i) CHECK_EQUAL(b[i], (char)((have + i) * 7));
    have += (int)n;
  }
  CHECK_EQUAL(have, kBytes);
  join(t);
  return succeed();
}
