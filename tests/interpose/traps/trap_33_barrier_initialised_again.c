// SPDX-License-Identifier: Apache-2.0
// A barrier is used for many rounds, destroyed, and initialised again for another number of
// threads; a count of zero is refused.
#include "../small.h"

static pthread_barrier_t barrier;
static int serial;

static void* meet(void* x) {
  for (int i = 0; i < 5; ++i) {
    const int result = pthread_barrier_wait(&barrier);
    if (result == PTHREAD_BARRIER_SERIAL_THREAD) {
      __atomic_fetch_add(&serial, 1, __ATOMIC_SEQ_CST);
    } else {
      CHECK_EQUAL(result, 0);
    }
  }
  return x;
}

int main(void) {
  pthread_t t[4];
  CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, 0), EINVAL);
  for (int n = 1; n <= 4; ++n) {
    serial = 0;
    CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, (unsigned)n), 0);
    for (int i = 0; i < n; ++i) t[i] = start(meet, NULL);
    for (int i = 0; i < n; ++i) join(t[i]);
    CHECK_EQUAL(serial, 5);
    CHECK_EQUAL(pthread_barrier_destroy(&barrier), 0);
  }
  return succeed();
}
