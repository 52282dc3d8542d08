// SPDX-License-Identifier: Apache-2.0
// says: limit: .*threads
// Threads are made until the limit (EAGAIN); when they have ended, others can be made.
#include "../limit.h"

#define MOST 4200

static pthread_t threads[MOST];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int over, started_with;

static void* wait_for_the_end(void* given) {
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  while (!over) CHECK_EQUAL(pthread_cond_wait(&changed, &mutex), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  return given;
}

int main(void) {
  pthread_attr_t small;
  CHECK_EQUAL(pthread_attr_init(&small), 0);
  CHECK_EQUAL(pthread_attr_setstacksize(&small, 64 * 1024), 0);
  int made = 0, error = 0, refusals = 0;
  while (made < MOST && refusals < 20) {
    error = pthread_create(&threads[made], &small, wait_for_the_end, &started_with);
    if (error == 0) {
      ++made;
    } else {
      check_refusal(error, EAGAIN, 0);
      ++refusals;
    }
  }
  CHECK(made > 100);
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  over = 1;
  CHECK_EQUAL(pthread_cond_broadcast(&changed), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  for (int i = 0; i < made; ++i) CHECK(join(threads[i]) == &started_with);
  CHECK_EQUAL(elsewhere(wait_for_the_end, &made), (long)&made);
  return succeed();
}
