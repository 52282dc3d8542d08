// SPDX-License-Identifier: Apache-2.0
// Thread-local variables start from their initial value in each thread.
#include "../small.h"

static __thread int value = 5;
static void* change(void* x) {
  CHECK_EQUAL(value, 5);
  value = (int)(long)x;
  sched_yield();
  CHECK_EQUAL(value, (long)x);
  return x;
}

int main(void) {
  const pthread_t a = start(change, (void*)1), b = start(change, (void*)2);
  join(a);
  join(b);
  CHECK_EQUAL(value, 5);
  return succeed();
}
