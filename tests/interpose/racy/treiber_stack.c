// SPDX-License-Identifier: Apache-2.0
// A lock-free stack: the interleaving decides which thread pops which item; nothing is lost.
#include "racy.h"

struct Node {
  struct Node* next;
  int value;
};
static struct Node nodes[4 * 100];
static struct Node* _Atomic top;
static long popped[4];
static void* run(void* x) {
  const int me = (int)(long)x;
  for (int i = 0; i < 100; ++i) {
    struct Node* n = &nodes[me * 100 + i];
    n->value = me * 100 + i;
    n->next = atomic_load(&top);
    while (!atomic_compare_exchange_weak(&top, &n->next, n)) work(10);
    work(60);
    if (i % 10 == me) sched_yield();
    if (i % 3 == 2) {
      struct Node* t = atomic_load(&top);
      while (t != NULL && !atomic_compare_exchange_weak(&top, &t, t->next)) work(10);
      if (t != NULL) popped[me] = popped[me] * 31 % 1000003 + t->value;
    }
  }
  return NULL;
}
int main(void) {
  run_threads(4, run);
  int left = 0;
  for (struct Node* n = top; n != NULL; n = n->next) ++left;
  printf("left %d, popped %ld %ld %ld %ld\n", left, popped[0], popped[1], popped[2], popped[3]);
  return 0;
}
