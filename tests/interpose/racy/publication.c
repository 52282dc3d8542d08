// SPDX-License-Identifier: Apache-2.0
// An object is published by a plain pointer, and changed after that.
#include "racy.h"

struct Config {
  int version, check;
};
static struct Config configs[200];
static struct Config* volatile current = &configs[0];
static volatile long seen[3], half[3];
static void* run(void* x) {
  const long me = (long)x;
  for (int i = 1; i < 200; ++i) {
    if (me == 0) {
      configs[i].version = i;
      current = &configs[i];
      work(120);
      configs[i].check = i;
      if (i % 10 == 0) sched_yield();
    } else {
      const volatile struct Config* c = current;
      seen[me] = (seen[me] * 31 + c->version) % 1000003;
      if (c->check != c->version) ++half[me];
      work(100);
      if (i % 9 == 0) sched_yield();
    }
  }
  return NULL;
}
int main(void) {
  run_threads(3, run);
  printf("seen %ld %ld, half made %ld %ld\n", seen[1], seen[2], half[1], half[2]);
  return 0;
}
