// SPDX-License-Identifier: Apache-2.0
// Lazy initialisation with a check, no lock and a second check: it happens more than once.
#include "racy.h"

struct Thing {
  int made_by;
};
static struct Thing* volatile things[64];
static volatile int made;
static void* use(void* x) {
  for (int i = 0; i < 64; ++i) {
    if (things[i] == NULL) {
      struct Thing* t = malloc(sizeof *t);
      t->made_by = (int)(long)x;
      work(300);
      if (i % 3 == 0) sched_yield();
      if (things[i] == NULL || i % 2 == 0) things[i] = t;
      ++made;
    }
  }
  return NULL;
}
int main(void) {
  run_threads(4, use);
  printf("made %d:", made);
  for (int i = 0; i < 64; ++i) printf(" %d", things[i]->made_by);
  printf("\n");
  return 0;
}
