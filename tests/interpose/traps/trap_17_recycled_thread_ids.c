// SPDX-License-Identifier: Apache-2.0
// Detached threads end and their ids are reused: joins of later threads with the same id work.
#include "../small.h"

static sem_t ended;

static void* end(void* x) {
  sem_post(&ended);
  return x;
}
static void* answer(void* x) { return (void*)((long)x * 2); }

int main(void) {
  sem_init(&ended, 0, 0);
  for (long i = 0; i < 100; ++i) {
    pthread_t t = start(end, NULL);
    CHECK_EQUAL(pthread_detach(t), 0);
    CHECK_EQUAL(sem_wait(&ended), 0);
    CHECK_EQUAL(elsewhere(answer, (void*)i), 2 * i);
  }
  return succeed();
}
