// SPDX-License-Identifier: Apache-2.0
// In each round exactly one thread gets PTHREAD_BARRIER_SERIAL_THREAD.
#include "../small.h"

static pthread_barrier_t barrier;
static int serial[10];
static void* meet(void* x) {
  for (int i = 0; i < 10; ++i) {
    const int result = pthread_barrier_wait(&barrier);
    if (result != 0) {
      CHECK_EQUAL(result, PTHREAD_BARRIER_SERIAL_THREAD);
      __atomic_fetch_add(&serial[i], 1, __ATOMIC_SEQ_CST);
    }
  }
  return x;
}

int main(void) {
  pthread_t t[5];
  CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, 5), 0);
  for (int i = 0; i < 5; ++i) t[i] = start(meet, NULL);
  for (int i = 0; i < 5; ++i) join(t[i]);
  for (int i = 0; i < 10; ++i) CHECK_EQUAL(serial[i], 1);
  return succeed();
}
