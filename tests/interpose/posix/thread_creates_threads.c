// SPDX-License-Identifier: Apache-2.0
// Threads that create threads: a tree of them, each joined by its creator.
#include "../small.h"

static void* grow(void* x) {
  const long depth = (long)x;
  if (depth == 0) return (void*)1;
  const pthread_t a = start(grow, (void*)(depth - 1)), b = start(grow, (void*)(depth - 1));
  const long sum = (long)join(a) + (long)join(b);
  return (void*)sum;
}

int main(void) {
  CHECK_EQUAL((long)grow((void*)4), 16);
  return succeed();
}
