// SPDX-License-Identifier: Apache-2.0
// No thread passes a barrier before all have arrived.
#include "../small.h"

static pthread_barrier_t barrier;
static int arrived;
static void* meet(void* x) {
  for (int round = 1; round <= 5; ++round) {
    usleep((useconds_t)((long)x * 300));
    __atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
    pthread_barrier_wait(&barrier);
    CHECK(__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) >= 4 * round);
    pthread_barrier_wait(&barrier);
  }
  return x;
}

int main(void) {
  pthread_t t[4];
  pthread_barrier_init(&barrier, NULL, 4);
  for (long i = 0; i < 4; ++i) t[i] = start(meet, (void*)i);
  for (int i = 0; i < 4; ++i) join(t[i]);
  return succeed();
}
