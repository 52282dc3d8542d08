// SPDX-License-Identifier: Apache-2.0
// The opposite of the racy programs: the order of arrival decides the result, and a mutex decides
// the order. Under Crane every replica prints the same, also in parallel mode.
#include "../interpose/racy/racy.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long order;
static void* run(void* x) {
  for (int i = 0; i < 60; ++i) {
    work(20);
    pthread_mutex_lock(&mutex);
    order = (order * 5 + (long)x) % 1000003;
    pthread_mutex_unlock(&mutex);
    if (i % 8 == (long)x) sched_yield();
  }
  return NULL;
}
int main(void) {
  run_threads(4, run);
  printf("order %ld\n", order);
  return 0;
}
