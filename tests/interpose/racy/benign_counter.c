// SPDX-License-Identifier: Apache-2.0
// Counters without a lock: increments are lost; how many depends on the interleaving.
#include "racy.h"

static volatile long hits, misses;
static void* count(void* x) {
  for (int i = 0; i < 400; ++i) {
    const long seen = hits;
    work(50);
    hits = seen + 1;
    if (i % 20 == (long)x) sched_yield();
    ++misses;
  }
  return NULL;
}
int main(void) {
  run_threads(4, count);
  printf("hits %ld of 1600, misses %ld\n", hits, misses);
  return 0;
}
