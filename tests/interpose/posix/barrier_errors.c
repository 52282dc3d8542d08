// SPDX-License-Identifier: Apache-2.0
// A barrier for no thread is refused; one for a single thread never waits, and can be initialised
// again.
#include "../small.h"

int main(void) {
  pthread_barrier_t barrier;
  pthread_barrierattr_t attributes;
  int shared = -1;
  CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, 0), EINVAL);
  CHECK_EQUAL(pthread_barrierattr_init(&attributes), 0);
  CHECK_EQUAL(pthread_barrierattr_getpshared(&attributes, &shared), 0);
  CHECK_EQUAL(shared, PTHREAD_PROCESS_PRIVATE);
  CHECK_EQUAL(pthread_barrierattr_setpshared(&attributes, 77), EINVAL);
  for (int i = 0; i < 5; ++i) {
    CHECK_EQUAL(pthread_barrier_init(&barrier, &attributes, 1), 0);
    CHECK_EQUAL(pthread_barrier_wait(&barrier), PTHREAD_BARRIER_SERIAL_THREAD);
    CHECK_EQUAL(pthread_barrier_wait(&barrier), PTHREAD_BARRIER_SERIAL_THREAD);
    CHECK_EQUAL(pthread_barrier_destroy(&barrier), 0);
  }
  return succeed();
}
