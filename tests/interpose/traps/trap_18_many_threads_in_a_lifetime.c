// SPDX-License-Identifier: Apache-2.0
// More than 5,000 threads in the lifetime of a process, some of them at the same time.
#include "../small.h"

static int counter;

static void* count(void* x) {
  __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);
  return x;
}

int main(void) {
  pthread_t t[4];
  for (int i = 0; i < 5200 / 4; ++i) {
    for (int j = 0; j < 4; ++j) t[j] = start(count, NULL);
    for (int j = 0; j < 4; ++j) join(t[j]);
  }
  CHECK_EQUAL(counter, 5200);
  return succeed();
}
