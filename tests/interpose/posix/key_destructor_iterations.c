// SPDX-License-Identifier: Apache-2.0
// Destructors run again while there are values, at most PTHREAD_DESTRUCTOR_ITERATIONS times.
#define _GNU_SOURCE
#include <limits.h>

#include "../small.h"

static pthread_key_t key;
static int rounds;
static void destroy(void* x) {
  ++rounds;
  pthread_setspecific(key, x);
}
static void* use(void* x) {
  pthread_setspecific(key, &key);
  return x;
}

int main(void) {
  pthread_key_create(&key, destroy);
  join(start(use, NULL));
  CHECK_EQUAL(rounds, PTHREAD_DESTRUCTOR_ITERATIONS);
  return succeed();
}
