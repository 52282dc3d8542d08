// SPDX-License-Identifier: Apache-2.0
// A spin lock built of an atomic exchange that yields: mutual exclusion holds, the order is a race.
#include "racy.h"

static atomic_int held;
static volatile long order, inside;
static void* run(void* x) {
  for (int i = 0; i < 80; ++i) {
    while (atomic_exchange(&held, 1) != 0) sched_yield();
    inside += 1;
    order = (order * 5 + (long)x) % 1000003;
    work(60);
    atomic_store(&held, 0);
    if (i % 6 == (long)x) sched_yield();
    work(40);
  }
  return NULL;
}
int main(void) {
  run_threads(4, run);
  printf("inside %ld, order %ld\n", inside, order);
  return 0;
}
