// SPDX-License-Identifier: Apache-2.0
// Two threads never hold one mutex at the same time, of any kind.
#include "../small.h"

static pthread_mutex_t mutex;
static int inside, total;
static void* enter(void* x) {
  for (int i = 0; i < 50; ++i) {
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    CHECK_EQUAL(++inside, 1);
    if (i % 7 == 0) sched_yield();
    ++total;
    CHECK_EQUAL(--inside, 0);
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  }
  return x;
}

int main(void) {
  const int kinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                       PTHREAD_MUTEX_ADAPTIVE_NP};
  for (int k = 0; k < 4; ++k) {
    pthread_mutexattr_t a;
    pthread_t t[4];
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, kinds[k]);
    pthread_mutex_init(&mutex, &a);
    for (int i = 0; i < 4; ++i) t[i] = start(enter, NULL);
    for (int i = 0; i < 4; ++i) join(t[i]);
    CHECK_EQUAL(pthread_mutex_destroy(&mutex), 0);
  }
  CHECK_EQUAL(total, 800);
  return succeed();
}
