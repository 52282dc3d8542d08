// SPDX-License-Identifier: Apache-2.0
// Threads pass a baton by plain flags and count how often they checked without success.
#include "racy.h"

static volatile int baton;
static volatile long looks[3];
static void* pass(void* x) {
  const int me = (int)(long)x;
  for (int i = 0; i < 30; ++i) {
    while (baton % 3 != me) {
      ++looks[me];
      work(15);
      if (looks[me] % 8 == 0) sched_yield();
    }
    work(100);
    ++baton;
  }
  return NULL;
}
int main(void) {
  run_threads(3, pass);
  printf("baton %d, looks %ld %ld %ld\n", baton, looks[0], looks[1], looks[2]);
  return 0;
}
