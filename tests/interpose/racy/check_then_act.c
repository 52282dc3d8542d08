// SPDX-License-Identifier: Apache-2.0
// Sell while there is stock: the check and the act are two steps.
#include "racy.h"

static volatile int stock = 150, sold[4];
static void* sell(void* x) {
  const int me = (int)(long)x;
  while (stock > 0) {
    const int seen = stock;
    work(100);
    if (seen % 9 == me) sched_yield();
    stock = seen - 1;
    ++sold[me];
  }
  return NULL;
}
int main(void) {
  run_threads(4, sell);
  printf("stock %d, sold %d %d %d %d\n", stock, sold[0], sold[1], sold[2], sold[3]);
  return 0;
}
