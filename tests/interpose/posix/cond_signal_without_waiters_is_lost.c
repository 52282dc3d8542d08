// SPDX-License-Identifier: Apache-2.0
// A signal without waiters is not kept.
#include "../small.h"

int main(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  CHECK_EQUAL(pthread_cond_signal(&condition), 0);
  CHECK_EQUAL(pthread_cond_broadcast(&condition), 0);
  pthread_mutex_lock(&mutex);
  const struct timespec until = in_ns(CLOCK_REALTIME, 5 * MS);
  CHECK_EQUAL(pthread_cond_timedwait(&condition, &mutex, &until), ETIMEDOUT);
  CHECK_EQUAL(pthread_mutex_trylock(&mutex), EBUSY);  // held again
  return succeed();
}
