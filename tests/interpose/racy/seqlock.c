// SPDX-License-Identifier: Apache-2.0
// A sequence lock without barriers: readers retry, or see torn pairs.
#include "racy.h"

static volatile unsigned sequence;
static volatile long left, right;
static volatile long retries, torn;
static void* run(void* x) {
  for (int i = 0; i < 300; ++i) {
    if ((long)x == 0) {
      ++sequence;
      left = i;
      work(100);
      right = i;
      ++sequence;
      if (i % 8 == 0) sched_yield();
    } else {
      const unsigned before = sequence;
      const long a = left;
      work(60);
      const long b = right;
      if (before != sequence || before % 2 != 0) {
        ++retries;
        if (i % 4 == 0) sched_yield();
      } else if (a != b) {
        ++torn;
      }
    }
    if (i % 32 == 0) usleep(1);
  }
  return NULL;
}
int main(void) {
  run_threads(3, run);
  printf("retries %ld torn %ld\n", retries, torn);
  return 0;
}
