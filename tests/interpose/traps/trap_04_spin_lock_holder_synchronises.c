// SPDX-License-Identifier: Apache-2.0
// The holder of a spin lock locks a mutex and sleeps while three others spin.
#include "../small.h"

static pthread_spinlock_t spin;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int inside, entered;

static void* enter(void* x) {
  CHECK_EQUAL(pthread_spin_lock(&spin), 0);
  CHECK_EQUAL(++inside, 1);
  pthread_mutex_lock(&mutex);
  ++entered;
  pthread_mutex_unlock(&mutex);
  sleep_ms(2);
  CHECK_EQUAL(--inside, 0);
  CHECK_EQUAL(pthread_spin_unlock(&spin), 0);
  return x;
}

int main(void) {
  pthread_t t[4];
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  for (int i = 0; i < 4; ++i) t[i] = start(enter, NULL);
  for (int i = 0; i < 4; ++i) join(t[i]);
  CHECK_EQUAL(entered, 4);
  CHECK_EQUAL(pthread_spin_destroy(&spin), 0);
  return succeed();
}
