// SPDX-License-Identifier: Apache-2.0
// Threads change several fields without a lock: an update that another thread makes between the
// read and the write is lost.
#include "racy.h"

static volatile long account[4] = {1000, 1000, 1000, 1000};
static void* transfer(void* x) {
  unsigned r = (unsigned)(long)x * 77 + 1;
  for (int i = 0; i < 300; ++i) {
    const unsigned from = next_random(&r) % 4, to = next_random(&r) % 4;
    const long a = account[from], amount = (long)(next_random(&r) % 10);
    work(40);
    account[from] = a - amount;
    account[to] += amount;
    if (i % 16 == 0) sched_yield();
  }
  return NULL;
}
int main(void) {
  run_threads(4, transfer);
  printf("%ld %ld %ld %ld\n", account[0], account[1], account[2], account[3]);
  return 0;
}
