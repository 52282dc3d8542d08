// SPDX-License-Identifier: Apache-2.0
// A timed wait that is signalled in time returns 0.
#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int ready;
static void* wake(void* x) {
  sleep_ms(5);
  pthread_mutex_lock(&mutex);
  ready = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  return x;
}

int main(void) {
  int error = 0;
  const pthread_t t = start(wake, NULL);
  const struct timespec until = in_ns(CLOCK_REALTIME, 60000 * MS);
  pthread_mutex_lock(&mutex);
  while (!ready && error == 0) error = pthread_cond_timedwait(&condition, &mutex, &until);
  CHECK_EQUAL(error, 0);
  pthread_mutex_unlock(&mutex);
  join(t);
  return succeed();
}
