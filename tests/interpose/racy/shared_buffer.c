// SPDX-License-Identifier: Apache-2.0
// A log buffer with a plain index: lines overwrite each other.
#include "racy.h"

static volatile char buffer[4096];
static volatile int used;
static void* run(void* x) {
  for (int i = 0; i < 200; ++i) {
    const int at = used;
    buffer[at % 4096] = (char)('a' + (long)x);
    work(70);
    used = at + 1;
    if (i % 12 == (long)x) sched_yield();
  }
  return NULL;
}
int main(void) {
  long sum = 0;
  run_threads(4, run);
  for (int i = 0; i < used; ++i) sum = (sum * 31 + buffer[i]) % 1000003;
  printf("used %d, sum %ld\n", used, sum);
  return 0;
}
