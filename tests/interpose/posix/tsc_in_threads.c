// SPDX-License-Identifier: Apache-2.0
// Threads read at the same places at the same time, from the first read on, while others jump into
// the middle of them: each thread's time only grows.
#include "tsc.h"

enum { kSites = 64, kThreads = 4 };

PLACES(64);

typedef uint64_t (*Way)(uint64_t);
static pthread_barrier_t together;

static void* read_everywhere(void* given) {
  uint64_t last = 0, wrong = 0;
  for (int s = 0; s < kSites; ++s) {
    const Way read = (Way)(uintptr_t)(places + 32 * s),
              other = (Way)(uintptr_t)(places + 32 * s + 16);
    pthread_barrier_wait(&together);
    for (uint64_t i = 0; i < READS; ++i) {
      const uint64_t now = read(0);
      wrong += now <= last;
      last = now;
      wrong += other(i) != i;
    }
  }
  (void)given;
  return (void*)wrong;
}

int main(void) {
  CHECK_EQUAL(pthread_barrier_init(&together, NULL, kThreads), 0);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) threads[i] = start(read_everywhere, NULL);
  for (int i = 0; i < kThreads; ++i) CHECK_EQUAL((long)join(threads[i]), 0);
  int changed = 0;
  for (int s = 0; s < kSites; ++s) changed += is_changed(places + 32 * s);
  CHECK_EQUAL(changed, is_virtual() ? kSites : 0);
  return succeed();
}
