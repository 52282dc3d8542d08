// SPDX-License-Identifier: Apache-2.0
// Two threads that read one pipe share its bytes, each byte read once, and both see its end.
#define _GNU_SOURCE
#include "../small.h"

static int fds[2];
static unsigned char seen[256];

static void* take(void* unused) {
  (void)unused;
  unsigned char b[7];
  long total = 0;
  for (ssize_t n; (n = read(fds[0], b, sizeof b)) != 0; total += n) {
    CHECK(n > 0);
    for (ssize_t i = 0; i < n; ++i) __atomic_add_fetch(&seen[b[i]], 1, __ATOMIC_RELAXED);
  }
  return (void*)total;
}

int main(void) {
  CHECK_EQUAL(pipe(fds), 0);
  const pthread_t a = start(take, NULL), b = start(take, NULL);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 256; i += 4) {
      const unsigned char part[4] = {(unsigned char)i, (unsigned char)(i + 1),
                                     (unsigned char)(i + 2), (unsigned char)(i + 3)};
      CHECK_EQUAL(write(fds[1], part, 4), 4);
    }
  }
  CHECK_EQUAL(close(fds[1]), 0);
  CHECK_EQUAL((long)join(a) + (long)join(b), 2560);
  for (int i = 0; i < 256; ++i) CHECK_EQUAL(seen[i], 10);
  return succeed();
}
