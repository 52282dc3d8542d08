// SPDX-License-Identifier: Apache-2.0
// A thread runs on the stack given in its attributes.
#define _GNU_SOURCE
#include <sys/mman.h>

#include "../small.h"

static char* stack;
static const size_t kSize = 256 * 1024;
static void* where(void* x) {
  char here;
  CHECK(&here > stack && &here < stack + kSize);
  return x;
}

int main(void) {
  pthread_attr_t a;
  pthread_t t;
  stack = mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_init(&a);
  CHECK_EQUAL(pthread_attr_setstack(&a, stack, kSize), 0);
  for (int i = 0; i < 3; ++i) {
    CHECK_EQUAL(pthread_create(&t, &a, where, NULL), 0);
    join(t);
  }
  return succeed();
}
