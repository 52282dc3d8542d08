// SPDX-License-Identifier: Apache-2.0
// A thread cancelled in a condition wait runs its clean-up handler with the mutex held again.
#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t waiting;
static int cleaned;

static void clean(void* x) {
  (void)x;
  ++cleaned;
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
}
static void* wait_for_ever(void* x) {
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(clean, NULL);
  sem_post(&waiting);
  for (;;) pthread_cond_wait(&never, &mutex);
  pthread_cleanup_pop(1);
  return x;
}

int main(void) {
  sem_init(&waiting, 0, 0);
  const pthread_t t = start(wait_for_ever, NULL);
  sem_wait(&waiting);
  pthread_mutex_lock(&mutex);  // so it waits by now
  pthread_mutex_unlock(&mutex);
  CHECK_EQUAL(pthread_cancel(t), 0);
  CHECK(join(t) == PTHREAD_CANCELED);
  CHECK_EQUAL(cleaned, 1);
  CHECK_EQUAL(pthread_mutex_trylock(&mutex), 0);
  return succeed();
}
