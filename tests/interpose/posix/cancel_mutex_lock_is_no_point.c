// SPDX-License-Identifier: Apache-2.0
// A thread that waits for a mutex is not cancelled there.
#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int got;
static void* lock(void* x) {
  pthread_mutex_lock(&mutex);
  got = 1;
  pthread_mutex_unlock(&mutex);
  pthread_testcancel();
  return x;
}

int main(void) {
  pthread_mutex_lock(&mutex);
  const pthread_t t = start(lock, NULL);
  sleep_ms(3);
  CHECK_EQUAL(pthread_cancel(t), 0);
  sleep_ms(3);
  pthread_mutex_unlock(&mutex);
  CHECK(join(t) == PTHREAD_CANCELED);
  CHECK_EQUAL(got, 1);
  return succeed();
}
