// SPDX-License-Identifier: Apache-2.0
// A bounded queue with atomic tickets: two consumers share its items as they come.
#include "racy.h"

enum { kItems = 400 };
static atomic_int slots[kItems], head, tail;
static long sums[4];
static void* run(void* x) {
  const int me = (int)(long)x;
  for (int i = 0; i < kItems / 2; ++i) {
    if (me < 2) {
      const int at = atomic_fetch_add(&tail, 1);
      work(30);
      atomic_store(&slots[at], me * 1000 + i + 1);
      if (i % 16 == 0) sched_yield();
    } else {
      const int at = atomic_fetch_add(&head, 1);
      int value;
      for (int n = 1; (value = atomic_load(&slots[at])) == 0; ++n) {
        work(5);
        if (n % 8 == 0) sched_yield();
      }
      sums[me] = (sums[me] * 31 + value) % 1000003;
      work(30);
    }
  }
  return NULL;
}
int main(void) {
  run_threads(4, run);
  printf("consumers %ld %ld\n", sums[2], sums[3]);
  return 0;
}
