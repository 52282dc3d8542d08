// SPDX-License-Identifier: Apache-2.0
// `if (!done) { make(); done = 1; }` for many objects.
#include "racy.h"

static volatile int done[100], runs[100], by[100];
static void* run(void* x) {
  for (int i = 0; i < 100; ++i) {
    if (!done[i]) {
      ++runs[i];
      work(200);
      by[i] = (int)(long)x;
      done[i] = 1;
    }
    if (i % 11 == (long)x) sched_yield();
  }
  return NULL;
}
int main(void) {
  long total = 0, who = 0;
  run_threads(4, run);
  for (int i = 0; i < 100; ++i) {
    total += runs[i];
    who = (who * 5 + by[i]) % 1000003;
  }
  printf("runs %ld by %ld\n", total, who);
  return 0;
}
