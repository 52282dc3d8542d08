// SPDX-License-Identifier: Apache-2.0
// A free list by index, without tags: between a read and the swap the same index returns.
#include "racy.h"

enum { kNodes = 8 };
static atomic_int first;
static volatile int next_of[kNodes + 1];
static volatile long taken[4], suspicious;
static volatile int version[kNodes + 1];
static void* run(void* x) {
  const int me = (int)(long)x;
  for (int i = 0; i < 200; ++i) {
    int n = atomic_load(&first);
    if (n == 0) {
      sched_yield();
      continue;
    }
    const int was = version[n];
    const int after = next_of[n];
    work(80);
    if (i % 13 == me) sched_yield();
    if (!atomic_compare_exchange_strong(&first, &n, after)) continue;
    if (version[n] != was) ++suspicious;
    taken[me] = (taken[me] * 31 + n) % 1000003;
    ++version[n];
    work(40);
    int top = atomic_load(&first);
    do {
      next_of[n] = top == n ? 0 : top;
    } while (!atomic_compare_exchange_strong(&first, &top, n));
  }
  return NULL;
}
int main(void) {
  for (int i = 1; i < kNodes; ++i) next_of[i] = i + 1;
  atomic_store(&first, 1);
  run_threads(4, run);
  printf("taken %ld %ld %ld %ld, rejoined %ld\n", taken[0], taken[1], taken[2], taken[3],
         suspicious);
  return 0;
}
