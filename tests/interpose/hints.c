// SPDX-License-Identifier: Apache-2.0
// The hints of hints/crane.h: soft barriers that fill, that time out, that end when no other thread
// can arrive; sections that leave the schedule. Natively they do nothing, and the program is the
// same.
//
// solo: --parallel
#define CRANE_PARROT_NAMES
#include "../../hints/crane.h"

#include <pthread.h>

#include "check.h"

enum { kThreads = 4, kRounds = 5 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int computed;

static void* compute(void* unused) {
  (void)unused;
  for (int i = 0; i < kRounds; ++i) {
    crane_soft_barrier(0);
    pthread_mutex_lock(&mutex);
    ++computed;
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void together(int threads) {
  pthread_t t[kThreads];
  computed = 0;
  for (int i = 0; i < threads; ++i) CHECK(pthread_create(&t[i], NULL, compute, NULL) == 0);
  for (int i = 0; i < threads; ++i) CHECK(pthread_join(t[i], NULL) == 0);
  CHECK_EQUAL(computed, threads * kRounds);
}

static void* in_a_section(void* x) {
  volatile long sum = 0;
  crane_section_begin();
  for (long i = 0; i < 1000000; ++i) sum += i;
  crane_section_end();
  crane_section_begin();
  for (long i = 0; i < 1000; ++i) sum += i;
  pthread_mutex_lock(&mutex);  // rejoins implicitly
  *(long*)x = sum;
  pthread_mutex_unlock(&mutex);
  pcs_exit();
  return NULL;
}

int main(void) {
  crane_soft_barrier(0);  // not set up
  crane_soft_barrier(CRANE_SOFT_BARRIERS + 1);
  crane_soft_barrier_init(0, kThreads, 1000000000);
  together(kThreads);      // it fills
  together(kThreads - 1);  // no other thread can arrive
  soba_init(0, kThreads, 0);
  together(kThreads - 1);  // it does not wait at all
  soba_destroy(0);
  soba_wait(0);
  pthread_t t[2];
  long sums[2] = {0, 0};
  for (int i = 0; i < 2; ++i) CHECK(pthread_create(&t[i], NULL, in_a_section, &sums[i]) == 0);
  for (int i = 0; i < 2; ++i) CHECK(pthread_join(t[i], NULL) == 0);
  CHECK_EQUAL(sums[0], sums[1]);
  CHECK_EQUAL(sums[0], 500000000000L - 500000L + 499500L);
  return succeed();
}
